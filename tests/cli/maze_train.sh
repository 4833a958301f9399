# bjepa train on a maze's dataset: a run to its end, its verdict, resuming, and what is refused.
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
err_has "the latents have collapsed: the run has no score"
check grep -q '"verdict": "collapsed"' flat/result.json
check test "$(grep -c plan_all flat/result.json)" -eq 0

run 0 train --data walk-medium-v0.npz --arm maze-branch --out branch -q --resume $tiny $open
run 2 train --data walk-medium-v0.npz --arm maze-branch --out branch -q $tiny $open
cp walk-medium-v0.npz walk.npz
run 2 train --data walk.npz --arm maze-branch --out other -q $tiny
err_has "which maze"
run 0 train --data walk.npz --maze medium --arm maze-branch --out other -q $tiny $open
run 3 train --data walk-medium-v0.npz --arm fullset --out scenes -q
finish
