# Tests bjepa maze graph and drive with trained runs: scores equal to their metrics, tables over seeds.
. "$BJ_ROOT/tests/support/cli.sh"

"$TEST_DATASET" write walk-medium-v0.npz
tiny="--set model.embed=8 --set model.latent=12 --set model.proj_hidden=8 --set model.atom_hidden=8
    --set model.router_hidden=8 --set train.batch=8 --set train.updates=5 --set train.epochs=2"
open="--set gate.std=0 --set gate.low_std=1 --set gate.rank=0 --set gate.separated=0"
train() { # train FOLDER ARGUMENT...
    out=$1
    shift
    "$BJEPA" train --data walk-medium-v0.npz --out "$out" -q $tiny "$@" >out 2>err
}
check train branch0 --arm maze-branch --seed 0 $open
check train branch1 --arm maze-branch --seed 1 $open
check train standard0 --arm maze-standard $open

# A graph file, and the numbers of result.json.
run 0 maze graph branch0 -o branch.json
err_empty
out_has "maze medium, predictor branch, seed 0, 10 updates"
check grep -qE '^raw COV-R +[0-9.]+%$' out
check grep -qE '^branch.json$' out
run 0 maze graph branch0 -o branch.json --json
for key in plan_all verified_route macro_precision macro_precision_self held_recall cov_r; do
    want=$(sed -n "s/^ *\"$key\": \([^,]*\),*$/\1/p" branch0/result.json)
    have=$(grep -oE "\"$key\": [^,}]*" out | cut -d' ' -f2)
    check test -n "$want" -a "${want%.0}" = "$have"
done
run 0 maze show branch.json -o branch.svg
run 0 maze show branch.json -o branch.html
check grep -qF '"predictor":"branch"' branch.json
check grep -qF '"withheld"' branch.json

# The dataset may have moved, but not changed; a run without a score has no graph.
mkdir away
mv walk-medium-v0.npz away/
run 5 maze graph branch0 -o other.json
err_has "the dataset of the run"
run 0 maze graph branch0 --data away/walk-medium-v0.npz -o other.json
check cmp branch.json other.json
mv away/walk-medium-v0.npz .
"$BJEPA" train --data walk-medium-v0.npz --out flat -q --arm maze-branch $tiny --set gate.rank=11 \
    >out 2>err
run 4 maze graph flat -o flat.json
err_has "the latents of this run have collapsed, so the run has no score"
check test ! -e flat.json
run 0 maze graph flat --collapsed -o flat.json
out_has "the latents have collapsed, so these numbers are not scores"
check grep -qF '"latents":"collapsed"' flat.json
run 5 maze graph nowhere -o none.json

# Driving by runs: the same as by the graph file, seeds together, the true graph beside them.
run 0 maze drive --graph branch.json --episodes 2 --json
alone=$(grep -oE '"successes": [0-9]+, "success"' out | grep -oE '[0-9]+')
run 0 maze drive branch0 standard0 branch1 --episodes 2
err_empty
out_has "maze medium: 5 tasks, 2 episodes each, seed 0, edges are never abandoned"
check grep -qE '^true graph +100\.0 +100\.0 .* 56\.0 +0\.0$' out
check grep -qE '^branch +2 +[0-9.]+ ± [0-9.]+ ' out
check grep -qE '^standard +1 +[0-9.]+ +[0-9.]+ ' out
run 0 maze drive branch0 --episodes 2 --patience 30 --json
out_has '"patience": 30'
run 0 maze drive branch0 branch1 --episodes 2 --json
check grep -qE '"graph": "true", "seeds": 0, "success": \{"mean": 1, "sd": null\}' out
total=$(grep -A2 -F '"run": "branch0"' out | grep -oE '"successes": \[[0-9, ]*\]' | head -1 |
    tr -dc '0-9 ' | awk '{ for (i = 1; i <= NF; i++) n += $i; print n }')
check test "$total" = "$alone"
run 4 maze drive branch0 flat --episodes 2
err_has "collapsed"
run 2 maze drive branch0 --graph branch.json
err_has "runs have their own graphs"

# Of a campaign, runs without a score are named.
cat >two.yaml <<'END'
name: two
arms: [maze-branch, maze-standard]
seeds: [0, 1]
set:
  model.embed: 8
  model.latent: 12
  model.proj_hidden: 8
  model.atom_hidden: 8
  model.router_hidden: 8
  train.batch: 8
  train.updates: 5
  train.epochs: 2
  gate.std: 0
  gate.low_std: 1
  gate.rank: 0
  gate.separated: 0
END
run 0 campaign two.yaml --data walk-medium-v0.npz --out two -q
rm -r two/runs/maze-standard/seed-1
run 0 maze drive two --episodes 1
check grep -qE '^branch +2 ' out
check grep -qE '^standard +1 ' out
out_has "omitted: 1 unfinished run"
run 0 maze drive two --episodes 1 --json
out_has '"why": "two/runs/maze-standard/seed-1: the run is not finished"'
finish
