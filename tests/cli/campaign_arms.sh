# A campaign with an arm of its own settings and a sweep: trained, resumed, locked, evaluated, shown.
. "$BJ_ROOT/tests/support/cli.sh"

for name in train dev val; do
    check "$BJEPA" simulate --cache $name.bjc --scenes 40 --seed 3 --split $name -q >/dev/null
done
cat >grid.yaml <<'END_YAML'
name: mine
data: train.bjc
dev: dev.bjc
arms: [{name: slow, arm: fullset, set: {optim.ema: 0.999}}, point]
sweep: {optim.lr: [1e-3, 3e-4]}
seeds: 1
set:
  train: {batch: 16, epochs: 2, warmup: 1}
  model: {embed: 8, heads: 2, token_hidden: 8, latent: 8, proj_hidden: 8, atom_hidden: 8,
          router_hidden: 8, decoder_hidden: 8}
END_YAML
run 0 campaign grid.yaml --out camp --dry-run
out_has "mine: 4 runs"
check grep -qE '^ +0  slow\+lr=1e-3 +0 .* 0\.001  camp/runs/slow\+lr=1e-3/seed-0$' out
check grep -qE '^ +3  point\+lr=3e-4 +0 .* 0\.0003  camp/runs/point\+lr=3e-4/seed-0$' out
run 2 campaign grid.yaml --out camp --set optim.lr=1
err_has "'optim.lr' is swept in grid.yaml and cannot be set as well"

run 0 campaign grid.yaml --out camp --jobs 1 --threads 1 -q
out_has "slow+lr=1e-3"
check grep -q '"ema": 0.999' camp/runs/slow+lr=3e-4/seed-0/config.resolved.json
check grep -q '"lr": 0.0003' camp/runs/slow+lr=3e-4/seed-0/config.resolved.json
check grep -q '"name": "slow+lr=1e-3"' camp/campaign.json
run 0 campaign --out camp --resume --jobs 1 -q
run 0 campaign status camp --json
out_has '"arm":"fullset","seed":0,'
out_has '"name":"slow+lr=1e-3"}'

run 0 lock camp --data val.bjc -q
out_has "camp: locked 4 runs (arms: 4, seeds: 1) and 40 held-out scenes"
run 0 lock run camp -q
check grep -qE '^slow\+lr=1e-3 +1 +[0-9.]+' out
run 0 table camp -m traj_es
check test "$(grep -cE '^(slow|point)\+lr=(1e-3|3e-4) +1 ' out)" -eq 4
run 0 report camp --out report.html --count 2
check grep -q 'slow+lr=3e-4' report.html
run 0 audit camp --data val.bjc -q
check test "$(grep -cE '^(slow|point)\+lr=(1e-3|3e-4) ' out)" -eq 4

finish
