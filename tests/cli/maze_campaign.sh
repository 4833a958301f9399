# Tests bjepa campaign with mazes: tables of graph metrics; collapsed runs are listed and not counted.
. "$BJ_ROOT/tests/support/cli.sh"

"$TEST_DATASET" write walk-medium-v0.npz
check test -s walk-medium-v0.npz
tiny="{model.embed: 8, model.latent: 12, model.proj_hidden: 8, model.atom_hidden: 8,
    model.router_hidden: 8, train.batch: 8, train.updates: 5, train.epochs: 2, gate.std: 0,
    gate.low_std: 1, gate.rank: 0, gate.separated: 0}"

# ------------------------------------------------------------------------------------ one dataset
printf 'name: one\narms: [maze-standard, maze-branch]\nseeds: 2\nset: %s\n' "$tiny" >one.yaml
run 0 campaign one.yaml --data walk-medium-v0.npz --out one --jobs 1
check grep -qE '^maze-branch +[01]\.[0-9]{3} +[01]\.[0-9]{3}$' out # raw COV-R
run 0 table one --dev -m plan_all,verified_route,held_recall,cov_r,mean_std,separated
check grep -qE '^maze-branch +2 ' out
out_has planAll
out_has "COV-R"
out_lacks "collapsed"
run 0 table one --dev --format csv --per-seed -m plan_all,predicted_edges,entropy_rank
check test "$(wc -l <out)" -eq 13
# what the table says is what the run says
for value in $(sed -n 's/^maze-branch,1,plan_all,//p' out); do
    check grep -q "\"plan_all\": $value" one/runs/maze-branch/seed-1/result.json
done
run 0 compare one --dev -a maze-branch -b maze-standard -m cov_r
out_has "COV-R"

# ---------------------------------------------------------------------------------------- collapse
# Latents of 12 numbers have no entropy rank of 12: every run collapses; then one of them only.
run 4 campaign one.yaml --data walk-medium-v0.npz --out flat --jobs 1 --set gate.rank=12
out_has "4 runs: 4 collapsed"
check grep -qE '^maze-branch +collapsed +collapsed$' out
out_has "maze-standard, seed 1: the latents have collapsed, so the run has no score"
run 4 table flat --dev
err_has "collapsed runs, which have no score: maze-standard seed 0, maze-branch seed 0, maze-standard seed 1"
out_empty
run 4 campaign --out flat --resume # left alone
out_has "4 collapsed"
run 0 campaign status flat --json
out_has '"collapsed":4}'
sed -i 's/"eligible":true/"eligible":false/' one/runs/maze-branch/seed-1/metrics.jsonl
run 3 table one --dev -m cov_r
err_has "collapsed runs, which have no score: maze-branch seed 1"
err_has "no value for the (arm, seed) pairs (maze-branch, 1)"
run 0 table one --dev --partial -m cov_r
check grep -qE '^maze-branch +1 ' out
out_has "collapsed runs, which have no score: maze-branch seed 1"
run 0 table one --dev --partial -m cov_r --format markdown
out_has "*collapsed runs, which have no score: maze-branch seed 1*"
run 0 table one --dev --partial -m cov_r --format latex
out_has "% collapsed runs, which have no score: maze-branch seed 1"
run 0 table one --dev --partial -m cov_r --json
out_has '"collapsed": [{"arm": "maze-branch", "seed": 1}]'
run 0 compare one --dev --partial -a maze-branch -b maze-standard -m cov_r
out_has "collapsed runs, which have no score: maze-branch seed 1"

# -------------------------------------------------------------------------------- several datasets
# A walk in the medium maze and a generated maze, which is found beside its dataset.
mkdir sets
mv walk-medium-v0.npz sets
run 0 maze generate --branches 3 --rows 2 --cols 3 --junctions 1 --episodes 20 --steps 201 -o sets/three
printf 'name: two\ndata: {walk: walk-medium-v0.npz, three: three.npz}\narms: [maze-standard, maze-branch]
seeds: 2\nset: %s\n' "$tiny" >two.yaml
run 5 campaign two.yaml --out two --dry-run
err_has "walk-medium-v0.npz"
run 0 campaign two.yaml --data sets --out two --dry-run
out_has "two: 8 runs"
out_has "/sets/three.npz"
check grep -qE ' 3  three/maze-branch +0 .*two/runs/three/maze-branch/seed-0$' out
check test ! -e two
run 0 campaign two.yaml --data sets --out two --jobs 1
check grep -qE '^walk/maze-standard +[01]\.[0-9]{3} +[01]\.[0-9]{3}$' out
check grep -qE '^three/maze-branch +[01]\.[0-9]{3} +[01]\.[0-9]{3}$' out
err_has "three/maze-branch, seed 1: done"
check grep -q '"name": "medium"' two/runs/walk/maze-branch/seed-1/manifest.json
check grep -q "\"sha256\": \"$(sha256sum sets/three.json | cut -c1-64)\"" two/runs/three/maze-branch/seed-0/manifest.json
run 0 table two --dev -m cov_r,entropy_rank
check test "$(sed -n 's/^\(walk\|three\)\(.maze-[a-z]*\).*/\1\2/p' out | tr '\n' ' ')" = \
    "walk/maze-standard walk/maze-branch three/maze-standard three/maze-branch "
run 0 compare two --dev -a walk/maze-branch -b walk/maze-standard -m cov_r
run 0 campaign status two --json
out_has '"datasets":["walk","three"]'
out_has '"data":"three"'
# The best of each dataset is marked, not of all.
printf 'arm,seed,metric,value\na/x,0,cov_r,1\na/y,0,cov_r,2\nb/x,0,cov_r,4\nb/y,0,cov_r,3\n' >best.csv
run 0 table best.csv
check test "$(sed -n 's/^\(...\) .*[0-9]\*$/\1/p' out | tr '\n' ' ')" = "a/y b/x "
# The same as a run by hand, bit for bit.
run 0 train --data sets/three.npz --config two/runs/three/maze-branch/seed-1/settings.json --out hand -q
check cmp hand/ckpt/best/model.safetensors two/runs/three/maze-branch/seed-1/ckpt/best/model.safetensors
run 0 train --data sets/three.npz --config two/runs/three/maze-branch/seed-1/settings.json --out hand -q --resume
# Without --data they are where they were; another maze beside the dataset is not allowed.
run 0 campaign two.yaml --out two --resume
run 0 maze generate --branches 2 --rows 2 --cols 3 --junctions 1 --episodes 20 --steps 201 -o two_branches
cp two_branches.json sets/three.json
run 4 train --data sets/three.npz --config two/runs/three/maze-branch/seed-1/settings.json --out hand -q --resume
err_has "this run was started with a different maze"
run 2 lock two --data sets/three.npz
err_has "has 2 datasets, expected one"
# One file in place of the folder is a campaign of one dataset.
run 0 campaign two.yaml --data sets/walk-medium-v0.npz --out walk --dry-run
out_has "two: 4 runs"

# -------------------------------------------------------------------------------- held-out episodes
run 0 train --data sets/walk-medium-v0.npz --config two/runs/walk/maze-branch/seed-0/settings.json \
    --set maze.held_out=0.4 --out held -q
check grep -q '"held_out": ' held/manifest.json
finish
