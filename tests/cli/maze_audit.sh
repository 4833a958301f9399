# Tests bjepa maze audit: numbers, pictures, and the runs that can be audited.
. "$BJ_ROOT/tests/support/cli.sh"

run 0 maze generate --branches 3 --seed 1 --episodes 12 --steps 101 -o walks
tiny="--set model.embed=8 --set model.latent=12 --set model.proj_hidden=8 --set model.atom_hidden=8
    --set model.router_hidden=8 --set train.batch=8 --set train.updates=5 --set train.epochs=2
    --set gate.std=0 --set gate.low_std=1 --set gate.rank=0 --set gate.separated=0"
train() { # train FOLDER ARGUMENT...
    out=$1
    shift
    "$BJEPA" train --data walks.npz --maze walks.json --out "$out" -q $tiny "$@" >out 2>err
}
held="--set maze.horizon=5 --set maze.held_out=0.3"
check train branch --arm maze-branch $held
check train standard --arm maze-standard $held

run 0 maze audit branch --standard standard --maze walks.json --horizon 4 -o audit -q
err_empty
out_has "in 4 held-out episodes (of 12), 5 steps between frames"
out_has "maze-branch, seed 0, 8 rollouts per context"
out_has "maze-standard, seed 0, 1 rollout per context"
check test "$(grep -cE '^ +[1-4]  ' out)" -eq 8
for key in schema order_sha256 data_sha256 weights_sha256 curves wall_mass probe_error paths; do
    check grep -qF "\"$key\":" audit/audit.json
done
check grep -qF '"split":{"episodes":12,"held_out":4,"seed":0,"share":0.3}' audit/audit.json
check grep -qF '"stride":5,"horizon":4,' audit/audit.json
# 4 panels; a rollout of 4 frames is a line with 4 marks, as a triangle or, in a wall, as a cross
check test "$(grep -c 'frames after the context' audit/curves.svg)" -eq 4
check test "$(grep -c 'class="a-rollout"' audit/context.svg)" -eq 9
check test "$(grep -cE 'class="a-(node|wall)"' audit/context.svg)" -eq 36
check test "$(grep -c 'class="a-truth"' audit/context.svg)" -eq 2
if [ -x "$BJ_ROOT/.venv/bin/python" ]; then
    check "$BJ_ROOT/.venv/bin/python" - <<'PY'
import json, xml.dom.minidom as dom
for name in "curves", "context": dom.parse(f"audit/{name}.svg")
a = json.load(open("audit/audit.json"))
assert [len(x["drawn"]["paths"]) for x in a["arms"]] == [8, 1]
assert all(len(p) == 4 for x in a["arms"] for p in x["drawn"]["paths"])
assert all(len(c) == 4 for x in a["arms"] for c in x["curves"].values())
assert len(a["drawn"]["truth"]) == 5 and a["contexts"]["count"] >= 4
PY
fi

# The same bytes from any number of threads, and from --json.
run 0 maze audit branch --standard standard --maze walks.json --horizon 4 -o again -q -j 2 --json
check cmp out audit/audit.json
check cmp again/context.svg audit/context.svg
check cmp again/curves.svg audit/curves.svg

check train all --arm maze-branch --set maze.horizon=5
run 2 maze audit all --maze walks.json -o no -q
err_has "maze.held_out is 0"
check train cells --arm maze-branch --set maze.held_out=0.3
run 2 maze audit cells --maze walks.json -o no -q
err_has "maze.horizon is 0"
check train other --arm maze-standard $held --set maze.split_seed=1
run 4 maze audit branch --standard other --maze walks.json --horizon 4 -o no -q
err_has "maze.split_seed is 1"
check test ! -e no/audit.json
run 2 maze audit
run 2 maze audit branch --horizon 0
finish
