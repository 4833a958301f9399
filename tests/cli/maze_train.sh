# Tests bjepa train with a maze dataset: a complete run, its outcome, resuming, rejected input.
. "$BJ_ROOT/tests/support/cli.sh"

"$TEST_DATASET" write walk-medium-v0.npz
check test -s walk-medium-v0.npz
tiny="--set model.embed=8 --set model.latent=12 --set model.proj_hidden=8 --set model.atom_hidden=8
    --set model.router_hidden=8 --set train.batch=8 --set train.updates=5 --set train.epochs=2"
open="--set gate.std=0 --set gate.low_std=1 --set gate.rank=0 --set gate.separated=0"

run 0 train --data walk-medium-v0.npz --arm maze-branch --out branch -q --json $tiny $open
out_has '"outcome":"done"'
out_has '"plan_all":'
out_lacks 'traj_es'
check grep -q '"verdict": "separated"' branch/result.json
check grep -q '"name": "medium"' branch/manifest.json
check grep -q 'maze.separated' branch/metrics.csv
run 0 train --data walk-medium-v0.npz --arm maze-standard --out standard $tiny $open
out_has "raw COV-R"
err_has "separated"

# Latents that fail a gate: no score, exit code 4.
run 4 train --data walk-medium-v0.npz --arm maze-branch --out flat -q --json $tiny --set gate.rank=11
out_has '"outcome":"collapsed"'
out_lacks 'plan_all'
err_has "the latents have collapsed, so the run has no score"
check grep -q '"verdict": "collapsed"' flat/result.json
check test "$(grep -c plan_all flat/result.json)" -eq 0

run 0 train --data walk-medium-v0.npz --arm maze-branch --out branch -q --resume $tiny $open
run 2 train --data walk-medium-v0.npz --arm maze-branch --out branch -q $tiny $open
cp walk-medium-v0.npz walk.npz
run 2 train --data walk.npz --arm maze-branch --out other -q $tiny
err_has "the maze is unknown"
run 0 train --data walk.npz --maze medium --arm maze-branch --out other -q $tiny $open
run 3 train --data walk-medium-v0.npz --arm fullset --out scenes -q

# A checkpoint to start from: its encoder comes with the standardization of its inputs.
walk="train --data walk-medium-v0.npz $tiny $open"
run 0 $walk --arm maze-branch --init branch --out tuned
err_has "loaded 46 of 46 tensors: encoder 8, branches 32, router 4, input 2"
cov() { sed -n "$2s/.*\"cov_r\":\([^,}]*\).*/\1/p" "$1/metrics.jsonl"; }
check test -n "$(cov tuned 1)"
check test "$(cov tuned 1)" = "$(cov branch 3)"
run 0 $walk --arm maze-codebook --init tuned --out codes
err_has "loaded 10 of 15 tensors: encoder 8, input 2"
err_has "init: part branches stays at its initialization (tensors: 4): atom.0.weight: the checkpoint has no such tensor"
err_has "init: part input stays at its initialization (tensors: 1): fitted to the data"
run 4 $walk --arm maze-branch --init branch --out x --set model.octaves=3
err_has "model.octaves: the checkpoint has 4, expected 3"

# More epochs, with the data and settings of the run.
run 0 train --out branch --resume --extend 2
check test "$(wc -l <branch/metrics.jsonl)" -eq 5
check grep -q '"best_epoch": 4' branch/result.json
finish
