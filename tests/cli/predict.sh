# Tests bjepa predict: equal results from files and caches, all branches in both frames, formats, errors.
. "$BJ_ROOT/tests/support/cli.sh"

check mkdir scenarios
check "$TEST_SCENARIO_SCENE" scenarios scenarios 7
check "$TEST_SCENE_EXPORT" model model.safetensors 50
run 0 data prep --av2 scenarios --out cache
id=03030303-0000-4000-8000-000000000002 # the third

# ----------------------------------------------------------------------------------------- text

run 0 predict model.safetensors "scenarios/$id"
err_empty
out_has "$id  nowhere, vehicle 100, 6.0 m/s"
check test "$(grep -cE '^  [ *] +[1-6]   ' out)" -eq 6
check test "$(grep -cE '^  \* ' out)" -eq 1
check awk '/^  [ *] +[1-6] / { w = $1 == "*" ? $3 : $2; if (w > most) most = w }
           /^  \* / { top = w }
           END { exit !(top == most && top > 0) }' out # it marks the heaviest
check awk '/^  [ *] +[1-6] / { sum += $1 == "*" ? $3 : $2 }
           END { exit !(sum > .999 && sum < 1.001) }' out
cp out text
run 0 predict model.safetensors "scenarios/$id/scenario_$id.parquet"
check cmp out text
run 0 predict model.safetensors scenarios --scene "$id"
check cmp out text
run 0 predict model.safetensors cache --scene "$id"
check cmp out text
run 0 predict model.safetensors cache --scene '#2' --threads 1
check cmp out text
mkdir -p run/ckpt/best
cp model.safetensors run/ckpt/best/
run 0 predict run cache --scene 03030303
check cmp out text
run 0 predict run/ckpt/best cache --scene 03030303 --precision bf16
out_has "$id"

# ----------------------------------------------------------------------------------------- JSON

run 0 predict model.safetensors scenarios --json
err_empty
check test "$(wc -l <out)" -eq 7
cp out all.jsonl
run 0 predict model.safetensors cache --json --threads 2
check cmp out all.jsonl
run 0 predict model.safetensors cache --out named.jsonl # the name says the format
out_empty
err_has "wrote named.jsonl, 7 scenes"
check cmp named.jsonl all.jsonl
run 0 predict model.safetensors cache --json --limit 3
check sh -c 'head -3 all.jsonl | cmp - out'
run 0 predict model.safetensors scenarios --json --limit 3
check sh -c 'head -3 all.jsonl | cmp - out'
run 0 predict model.safetensors "scenarios/$id" cache --json --limit 4 # operands in order
check sh -c '(sed -n 3p all.jsonl; head -3 all.jsonl) | cmp - out'
run 0 predict model.safetensors cache --json --latents --limit 1
cp out latents.jsonl
if command -v python3 >/dev/null; then
    check python3 - <<'END'
import json, math
lines = [json.loads(line) for line in open("all.jsonl")]
for i, s in enumerate(lines):
    assert (s["schema"], s["type"], s["track_id"]) == (1, "prediction", "100")
    assert s["origin"] == [2000.25 - 7 * i, -900.5 + 3 * i] and abs(s["heading"] - .3 * i) < 1e-12
    assert len(s["weights"]) == 6 and abs(sum(s["weights"]) - 1) < 1e-5 and "latents" not in s
    c, d = math.cos(s["heading"]), math.sin(s["heading"])
    assert len(s["trajectories"]) == len(s["trajectories_city"]) == 6
    for a, b in zip(s["trajectories"], s["trajectories_city"]):
        assert len(a) == len(b) == 60
        for (x, y), (u, v) in zip(a, b):
            assert abs(s["origin"][0] + c * x - d * y - u) < 1e-6
            assert abs(s["origin"][1] + d * x + c * y - v) < 1e-6
assert lines[0]["trajectories"] != lines[1]["trajectories"]
s = json.loads(open("latents.jsonl").read())
assert len(s["latents"]) == 6 and all(len(z) == 16 for z in s["latents"])
assert all(abs(sum(x * x for x in z) - 1) < 1e-4 for z in s["latents"])
assert {k: v for k, v in s.items() if k != "latents"} == lines[0]
END
fi

# --------------------------------------------------------------------- submissions and pictures

run 0 predict model.safetensors cache --parquet one.parquet
out_empty
err_has "wrote one.parquet, 7 scenes"
run 0 submit model.safetensors cache --out two.parquet
check cmp one.parquet two.parquet
run 0 predict model.safetensors scenarios --parquet three.parquet --json
check cmp one.parquet three.parquet
check cmp out all.jsonl

run 0 predict model.safetensors cache --scene "$id" --out scene.svg
check test "$(grep -c '<title>future ' scene.svg)" -eq 6
check test "$(grep -c 'class="area"' scene.svg)" -eq 1
run 2 predict model.safetensors cache --out many.svg
err_has "a picture can show only one scene; choose it with --scene"
check test ! -e many.svg

# --------------------------------------------------------------------------------------- errors

"$TEST_SCENE_EXPORT" model short.safetensors 20
run 3 predict short.safetensors cache
out_empty
err_has "short.safetensors, cache: the model has 20 observed steps, but the scenes have 50"
run 3 predict short.safetensors scenarios
run 5 predict none.safetensors cache
run 3 predict "$BJ_ROOT/README.md" cache
mkdir empty
run 5 predict empty cache
err_has "empty"
run 3 predict model.safetensors empty
err_has "empty: contains no scenario_ID.parquet, not even in subfolders"
run 3 predict model.safetensors "$BJ_ROOT/README.md"
run 5 predict model.safetensors none
err_has "none: No such file"
run 2 predict model.safetensors
run 2 predict model.safetensors cache --latents
err_has "--latents needs --json"
run 2 predict model.safetensors cache --scene 03030303-0000-4000-8000-000000000003
err_has "did you mean '$id'?"
run 2 predict model.safetensors scenarios --scene 03030303-0000-4000-8000-000000000003
err_has "did you mean '$id'?"
run 5 predict model.safetensors cache --out missing/folder.jsonl
err_has "missing/"
run 5 predict model.safetensors cache --parquet missing/folder.parquet

# A scenario that cannot be read is named and passed over; no half submission is left.
cp -r scenarios broken
echo hello >"broken/$id/scenario_$id.parquet"
run 3 predict model.safetensors broken --json
check sh -c 'sed 3d all.jsonl | cmp - out'
err_has "scenario_$id.parquet"
err_has "broken: 1 scenarios could not be read"
run 3 predict model.safetensors broken --parquet half.parquet
err_has "half.parquet was not written"
check test ! -e half.parquet
run 3 predict model.safetensors broken/$id --out none.jsonl
check test ! -e none.jsonl

finish
