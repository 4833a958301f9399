# Tests bjepa truth: checkpoints and baselines compared with the law of a simulated world, formats, errors.
. "$BJ_ROOT/tests/support/cli.sh"

check "$TEST_SCENE_EXPORT" model model.safetensors 50
check "$BJEPA" simulate --cache val.bjc --scenes 130 --seed 2 --split val -q >/dev/null
check "$BJEPA" simulate --cache train.bjc --scenes 5 --seed 2 -q >/dev/null
law=val.bjc.law.safetensors

# ----------------------------------------------------------------------------------------- text

run 0 truth --baseline val.bjc $law --samples 16 --best-scenes 4 --quiet
err_empty
out_has "val.bjc: 130 scenes, 16 draws per mode, seed 0"
out_has "$law: true distributions of 130 scenes"
out_has "best K atoms, discrepancy on 4 scenes"
check test "$(grep -c '^constant-velocity ' out)" -eq 4
check test "$(grep -c '^true-modes .*within the tolerance' out)" -eq 1
check test "$(grep -cE '^  0\.[0-9] - [01]\.[0-9] ' out)" -eq 20
cp out text
run 0 truth --baseline val.bjc $law --samples 16 --best-scenes 4 --quiet --threads 1
check cmp out text
run 0 truth --baseline val.bjc $law --samples 16 --best-scenes 0 --limit 20 -q
out_has "val.bjc: 20 scenes"
out_lacks "best K atoms"

# Inputs alone: nothing is hidden in version 2, control and limits are in version 1.
check grep -qE '^inputs alone +- +0\.0000 \+- 0\.0000$' text
check grep -qE 'inputs \(world version 2, 130 scenes\)$' text
run 0 simulate --world 1 --cache one.bjc --scenes 64 --seed 2 --split val -q
run 0 truth --baseline one.bjc one.bjc.law.safetensors --samples 16 --best-scenes 0 -q
check grep -qE '^inputs alone +- +0\.[0-9]+ \+- 0\.[0-9]+$' out
check grep -qE '^inputs alone +- +0\.0[2-9]|^inputs alone +- +0\.[1-9]' out
out_has "inputs (world version 1, 64 scenes)"
run 0 truth --baseline one.bjc one.bjc.law.safetensors --samples 16 --best-scenes 0 -q --input-scenes 0
out_lacks "inputs alone"

# ------------------------------------------------------------------------------------ checkpoints

mkdir -p run/ckpt/best
cp model.safetensors run/ckpt/best/
run 0 truth model.safetensors run val.bjc $law --baseline --samples 16 --best-scenes 2 --json -q -k 3
err_empty
cp out all.json
run 0 truth model.safetensors val.bjc $law --samples 16 --best-scenes 2 --json -q --threads 3
cp out one.json
if command -v python3 >/dev/null; then
    check python3 - <<'END_PYTHON'
import json
t = json.load(open("all.json"))
assert (t["schema"], t["type"], t["scenes"], t["samples"]) == (1, "truth", 130, 16)
inputs = t["inputs"]
assert (inputs["world"], inputs["scenes"], inputs["discrepancy"]["mean"]) == (2, 130, 0)
assert inputs["control"]["mean"] == inputs["limits"]["mean"] == 0
assert [a["name"] for a in t["arms"]] == ["model.safetensors", "run", "constant-velocity", "true-modes"]
assert [a["atoms"] for a in t["arms"]] == [6, 6, 1, 3]
a, b, velocity, modes = t["arms"]
a["name"] = b["name"] = ""
assert a == b
for arm in t["arms"]:
    half = arm["discrepancy"]["mean"] / 2 + arm["floor"]["mean"]
    assert abs(arm["expected_es"]["mean"] - half - arm["difference"]["mean"]) < 1e-9
    assert arm["identity"] and abs(arm["difference"]["mean"]) < 7 * arm["difference"]["error"]
    assert arm["realized"] == 130 and abs(arm["surprise"]) < 5 and arm["best_scenes"] == 2
    assert sum(x["count"] for x in arm["bins"]) == 4 * 130
    assert abs(arm["capacity"] + arm["learning"] - 1) < 1e-12
    assert 0 <= arm["recall"] <= 1 and 0 <= arm["mass_error"] <= 1 and 0 <= arm["unexplained"] <= 1
assert modes["discrepancy"]["mean"] < velocity["discrepancy"]["mean"] < a["discrepancy"]["mean"]
alone = json.load(open("one.json"))["arms"]
alone[0]["name"] = ""
assert alone == [a]
END_PYTHON
fi

# -------------------------------------------------------------------------------------- campaigns

check "$TEST_AUDIT" campaign grid val.bjc
run 0 truth grid run val.bjc $law --baseline --limit 20 --samples 16 --best-scenes 0 -q
err_has "grid/runs/point/seed-1: not finished, left out"
sed -n '/^mean +- SD over seeds/,/^$/p' out >arms
check grep -qE '^fullset +2( +[0-9.]+ \+- [0-9.]+){8}$' arms
check grep -qE '^point +1( +[0-9.]+){8} *$' arms
check grep -qE '^run +1( +[0-9.]+){8} *$' arms
check test "$(wc -l <arms)" -eq 8
out_has "maneuver probabilities of run"
out_lacks "maneuver probabilities of grid"
run 0 truth grid val.bjc $law --limit 20 --samples 16 --best-scenes 0 -q --json
if command -v python3 >/dev/null; then
    cp out grid.json
    check python3 - <<'END_PYTHON'
import json, re, statistics
arms = json.load(open("grid.json"))["arms"]
assert [a["name"] for a in arms] == [
    f"grid/runs/{run}/ckpt/best" for run in ("fullset/seed-0", "point/seed-0", "fullset/seed-1")], arms
two = [a["discrepancy"]["mean"] for a in arms if "fullset" in a["name"]]
line = next(x for x in open("arms") if x.startswith("fullset"))
mean, sd = map(float, re.findall(r"([0-9.]+) \+- ([0-9.]+)", line)[0])
assert abs(mean - statistics.mean(two)) < 1e-4 and abs(sd - statistics.stdev(two)) < 1e-4
END_PYTHON
fi

# ------------------------------------------------------------------------------------ submissions

check "$BJEPA" simulate --out val --scenes 130 --seed 2 --split val -q >/dev/null
check "$BJEPA" submit model.safetensors val.bjc --out model.parquet >/dev/null
check "$BJEPA" baseline constant-velocity --data val --out velocity.parquet >/dev/null
few="--samples 16 --best-scenes 2 -q"
run 0 truth --submission model.parquet velocity.parquet --data val.bjc $law $few --json --baseline -k 3
err_empty
cp out cache.json
run 0 truth --submission model.parquet velocity.parquet $law --data val $few --json
cp out folder.json
run 0 truth --submission model.parquet velocity.parquet val/law.safetensors $few --json
cp out law.json
if command -v python3 >/dev/null; then
    check python3 - <<'END_PYTHON'
import json
def flat(value):
    if isinstance(value, dict): return [x for k in sorted(value) for x in flat(value[k])]
    if isinstance(value, list): return [x for v in value for x in flat(v)]
    return [value]
def same(a, b, tolerance, without=()):
    a, b = ({k: v for k, v in x.items() if k not in ("name", *without)} for x in (a, b))
    a, b = flat(a), flat(b)
    assert len(a) == len(b)
    for x, y in zip(a, b):
        assert x == y or abs(x - y) <= tolerance, (x, y)
direct = json.load(open("all.json"))["arms"] # model, run, velocity, modes
cache, folder, law = (json.load(open(f + ".json")) for f in ("cache", "folder", "law"))
assert (cache["data"], folder["data"], law["data"]) == ("val.bjc", "val", None)
assert [a["name"] for a in cache["arms"]] == [
    "model.parquet", "velocity.parquet", "constant-velocity", "true-modes"]
same(cache["arms"][0], direct[0], 1e-9)
same(cache["arms"][1], direct[2], 1e-9)
same(cache["arms"][2], direct[2], 0)
same(cache["arms"][3], direct[3], 0)
realized = ("realized", "realized_es", "surprise")
for i in (0, 1):
    same(folder["arms"][i], cache["arms"][i], 1e-5)
    same(law["arms"][i], cache["arms"][i], 1e-9, realized)
    assert law["arms"][i]["realized"] == 0 and law["arms"][i]["realized_es"]["mean"] is None
END_PYTHON
fi
run 0 truth --submission velocity.parquet $law $few
out_has "$law: 130 scenes, 16 draws"
check test "$(grep -cE '^velocity.parquet .* -$' out)" -eq 1 # no realized score
run 0 truth --submission velocity.parquet $law --data val $few --limit 20
out_has "val: 20 scenes"
check "$BJEPA" simulate --out less --scenes 129 --seed 2 --split val -q >/dev/null
check "$BJEPA" baseline constant-velocity --data less --out less.parquet >/dev/null
run 4 truth --submission less.parquet --data val $law $few
err_has "less.parquet: 1 format violations; the first is no row, "
err_has "the scenario is not in the file"
run 4 truth --submission less.parquet $law $few
err_has "is not in the file"
run 4 truth --submission velocity.parquet --data less $law $few
err_has "the ground truth contains no such scenario"
run 4 truth --submission model.parquet $law $few --max-modes 5
err_has "has 6 modes, expected at most 5"
run 2 truth --submission velocity.parquet $law --baseline
err_has "--baseline with --submission needs --data"
run 2 truth --submission $law
run 2 truth model.safetensors val.bjc $law --data val
err_has "--data needs --submission"
run 3 truth --submission model.safetensors $law $few
run 5 truth --submission none.parquet $law $few
run 5 truth --submission velocity.parquet --data nowhere $law $few
out_empty

# ----------------------------------------------------------------------------------------- errors

run 2 truth val.bjc $law
err_has "only --baseline needs no checkpoint"
run 2 truth --baseline val.bjc
run 2 truth --baseline val.bjc $law --samples 18
err_has "expected a multiple of 4"
run 2 truth --baseline val.bjc $law --samples 8
run 3 truth --baseline train.bjc $law
err_has "scenes) is not in the distribution file"
err_has "split val"
out_empty
run 3 truth --baseline val.bjc train.bjc.law.safetensors
run 3 truth --baseline val.bjc val.bjc
run 3 truth --baseline $law $law
run 5 truth --baseline val.bjc none.safetensors
run 5 truth --baseline none.bjc $law
run 5 truth none.safetensors val.bjc $law -q --best-scenes 0
out_empty
"$TEST_SCENE_EXPORT" model short.safetensors 20
run 3 truth short.safetensors val.bjc $law -q --best-scenes 0
err_has "the model has 20 observed steps, but the scenes have 50"
run 0 truth --help
out_has "bjepa truth run/ckpt/best val.bjc"

finish
