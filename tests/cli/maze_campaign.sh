# bjepa campaign over mazes: tables of what the graphs are worth; collapsed runs are named, not counted.
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
out_has "maze-standard, seed 1: the latents have collapsed: the run has no score"
run 4 table flat --dev
err_has "collapsed, without a score: maze-standard seed 0, maze-branch seed 0, maze-standard seed 1"
out_empty
run 4 campaign --out flat --resume # left alone
out_has "4 collapsed"
run 0 campaign status flat --json
out_has '"collapsed":4}'
sed -i 's/"eligible":true/"eligible":false/' one/runs/maze-branch/seed-1/metrics.jsonl
run 3 table one --dev -m cov_r
err_has "collapsed, without a score: maze-branch seed 1"
err_has "no value for (arm, seed) (maze-branch, 1)"
run 0 table one --dev --partial -m cov_r
check grep -qE '^maze-branch +1 ' out
out_has "collapsed, without a score: maze-branch seed 1"
run 0 table one --dev --partial -m cov_r --format markdown
out_has "*collapsed, without a score: maze-branch seed 1*"
run 0 table one --dev --partial -m cov_r --format latex
out_has "% collapsed, without a score: maze-branch seed 1"
run 0 table one --dev --partial -m cov_r --json
out_has '"collapsed": [{"arm": "maze-branch", "seed": 1}]'
run 0 compare one --dev --partial -a maze-branch -b maze-standard -m cov_r
out_has "collapsed, without a score: maze-branch seed 1"
finish
