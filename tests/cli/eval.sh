# Tests bjepa eval: every metric of a checkpoint on a cache, as text and as JSON.
. "$BJ_ROOT/tests/support/cli.sh"
run 0 simulate --cache world.bjc --scenes 120 --seed 5
check mkdir -p run/ckpt
check "$TEST_EVALUATOR" make world.bjc run/ckpt/best

run 0 help eval
out_has "bjepa eval run --data val.bjc"
run 0 help
out_has "  eval "

# A run folder: everything.
run 0 eval run --data world.bjc -j 2
out_has "run/ckpt/best/model.safetensors: branches, K = 6, arm made-up, seed 3"
out_has "world.bjc: 120 scenes of part 'all'"
out_lacks "without a future"
for title in "trajectory Energy Score (m)" "endpoint Energy Score (m)" "latent Energy Score" \
    "expected ADE, FDE (m)" "top-1 ADE, FDE (m)" "maneuver Brier score, ECE" \
    "(a diagnostic, because" "minADE (m)" "minFDE (m)" "miss rate (2 m)" "brier-minFDE (m)" \
    "share of weight by branch" "target latents" "Calibration of the most likely maneuver" \
    "effective number of branches" "by weight" "distinct latents (0.10)" "distinct endpoints (1 m)" \
    "branches above 1 % of weight" "Use of the inputs" "effective tokens, context norm" \
    "focal track" "if an input is exchanged between 120 scenes" \
    "exp. ADE" "maneuver " "type " "city " "speed " "m/s" "latency " "throughput "; do
    out_has "$title"
done
err_empty

run 0 eval run/ckpt/best --data world.bjc --json -j 1
cp out one.json
run 0 eval run --data world.bjc --json -j 3
cp out three.json
# Nothing but the speed depends on the threads.
plain() { sed 's/,"seconds":.*//' "$1"; }
check test "$(plain one.json)" = "$(plain three.json)"
check test "$(plain one.json | wc -c)" -gt 2000
out_has '{"schema":"branchjepa.eval/1","type":"eval","model":"run/ckpt/best/model.safetensors"'
out_has '"arm":"made-up","seed":"3","kind":"branch","atoms":6,"target":true,"data":"world.bjc"'
out_has '"part":"all","scenes":120,"without_future":0,"over_limit":0,"metrics":{"traj_es":'
out_has '"groups":[{"by":"maneuver","key":"stop"'
out_has '"threads":3,'
out_lacks "null,\"exp_ade\""
out_lacks nan
if command -v python3 >python; then
    check python3 - <<'PYTHON'
import json
r = json.load(open("one.json"))
assert sum(g["scenes"] for g in r["groups"] if g["by"] == "city") == 120
assert sum(b["scenes"] for b in r["calibration"]) == 120
assert len(r["usage"]) == 6 and abs(sum(r["usage"]) - 1) < 1e-9
m = r["metrics"]
assert abs(m["traj_es"] - (m["traj_obs"] - m["traj_disp"])) < 1e-9
x = r["exchange"]
assert x["plain"] == m["traj_es"] and r["encoder"]["context_norm"] > 0
for part in ("map", "neighbors", "focal"):
    assert x[part] != 0 and abs(x[part] / x["plain"] - x[part + "_relative"]) < 1e-12
assert 1 < r["encoder"]["attention_tokens"] < 64
assert m["min_ade"] == m["min_ade_6"] <= m["top1_ade"] and m["min_fde"] == m["min_fde_6"]
assert m["mr_6"] == m["min_mr"] <= m["top1_mr"]
assert m["min_fde_6"] < m["brier_min_fde_6"] < m["min_fde_6"] + 1
assert m["top1_fde"] < m["brier_min_fde_1"] < m["top1_fde"] + 1
assert m["min_ade"] <= m["top1_ade"] and m["latent_es"] > 0 and r["health"]["participation"] >= 1
PYTHON
fi

# The leaderboard metrics are those of submit and score.
run 0 submit run world.bjc --out forecasts.parquet
run 0 score forecasts.parquet --av2 world.bjc --json
if command -v python3 >python; then
    check python3 - <<'PYTHON'
import json
m, score = json.load(open("one.json"))["metrics"], json.load(open("out"))["groups"][0]
names = {"top1_ade": "min_ade_1", "top1_fde": "min_fde_1", "top1_mr": "mr_1"}
for name in list(names) + ["brier_min_fde_1", "min_ade_6", "min_fde_6", "mr_6", "brier_min_fde_6"]:
    assert abs(m[name] - score[names.get(name, name)]) < 2e-6, name
PYTHON
fi

# A bare file has no target.
run 0 eval run/ckpt/best/model.safetensors --data world.bjc --json
out_has '"target":false'
out_has '"latent_es":null'
out_has '"neff_collision":null'
out_has '"health":{"mean_std":null'
err_has "note: latent metrics are not available"
run 0 eval run/ckpt/best/model.safetensors --data world.bjc --groups off --limit 7
out_has "world.bjc: 7 scenes of part 'all', 113 more were not evaluated"
out_lacks "exp. ADE"
check grep -Eq '^latent Energy Score +-$' out

# What the model looks at: percentages follow from meters, and fewer scenes have other partners.
check grep -Eq '"exchange":\{"scenes":120,"plain":[0-9.e-]+,"map":[0-9.e-]+,"map_relative":' one.json
run 0 eval run --data world.bjc --json --exchange 50 -q
cp out fifty.json
out_has '"exchange":{"scenes":50,"plain":'
run 0 eval run --data world.bjc --json --limit 50 -q
check test "$(sed 's/.*"exchange":\({[^}]*}\).*/\1/' fifty.json)" = \
    "$(sed 's/.*"exchange":\({[^}]*}\).*/\1/' out)"
run 0 eval run --data world.bjc --json --exchange 0 -q
out_has '"exchange":null,"usage"'
out_has '"encoder":{"attention_tokens":'
run 0 eval run --data world.bjc --exchange 0 -q
out_has "Use of the inputs"
out_lacks "focal track"
run 0 eval run --data world.bjc --limit 1 -q
check grep -Eq '^focal track +-$' out
run 2 eval run --data world.bjc --exchange -1
for kind in point outputonly uniform; do
    check "$TEST_EVALUATOR" make world.bjc $kind $kind
    run 0 eval $kind --data world.bjc --json -q
    check grep -Eq '"exchange":\{"scenes":120,"plain":[0-9.e-]+,"map":[0-9.e-]+,' out
done

# Parts add up.
run 0 eval run --data world.bjc --part dev --json --groups off
out_has '"part":"dev"'
out_has '"groups":[]'
dev=$(sed 's/.*"scenes":\([0-9]*\),"without_future.*/\1/' out)
run 0 eval run --data world.bjc --part fit --json
fit=$(sed 's/.*"scenes":\([0-9]*\),"without_future.*/\1/' out)
check test "$dev" -gt 0
check test $((dev + fit)) -eq 120

# Scenes without a future are counted and said.
check mkdir gaps
check "$TEST_SUBMIT" make gaps
run 0 eval gaps/model.safetensors --data gaps/test.bjc
out_has "gaps/test.bjc: 56 scenes of part 'all'; 14 without a future"
run 0 eval gaps --data gaps/test.bjc --json
out_has '"scenes":56,"without_future":14'
err_has "note: latent metrics are not available"

# Sixteen bits are another model.
run 0 eval run --data world.bjc --precision bf16 --json
out_has '"precision":"bf16"'
check test "$(plain out)" != "$(plain one.json)"

# Refusals.
run 2 eval run
err_has "--data CACHE is missing"
run 2 eval --data world.bjc
run 2 eval run --data world.bjc --part test
run 5 eval nowhere --data world.bjc
run 5 eval run --data nowhere.bjc
run 3 eval run --data world.bjc.law.safetensors
run 3 eval "$BJ_ROOT/tests/golden/checkpoint_v1.safetensors" --data world.bjc
err_has "the scenes have"
check cp -r run broken
check cp gaps/model.safetensors broken/ckpt/best/model.safetensors
run 3 eval broken --data world.bjc
err_has "belongs to another model.safetensors"
out_empty

finish
