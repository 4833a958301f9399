# Tests bjepa benchmark: making the standard benchmark from caches, scoring entries, rejecting other laws.
. "$BJ_ROOT/tests/support/cli.sh"

run 0 benchmark make bench --cache --split val
out_has "bench/val.bjc: scenes: 2,000, towns: 63,"
err_has "bjepa simulate --cache bench/val.bjc --world 2 --seed 20260 --split val --scenes 2000"
for rule in constant-velocity constant-velocity-6 constant-turn-rate; do
    check test -e bench/val-$rule.parquet
done
check test ! -e bench/val-lane-following.parquet
run 0 benchmark make bench --cache --split val # everything exists
out_empty
err_empty

cp bench/val-constant-velocity.parquet entry.parquet
cp bench/val-constant-turn-rate.parquet turn.parquet
run 0 benchmark score entry.parquet turn.parquet --data bench -q
err_empty
out_has "bench/val.bjc: 2,000 scenes, 64 draws per mode, seed 0"
check test "$(grep -c '^entry.parquet ' out)" -eq 4
check test "$(grep -c '^constant-velocity-6 ' out)" -eq 4
check test "$(grep -c '^true-modes ' out)" -eq 4
out_has "maneuver probabilities of entry.parquet"
out_lacks "maneuver probabilities of true-modes"
cp out score
if command -v python3 >/dev/null; then
    check python3 "$BJ_ROOT/scripts/benchmark_table.py" --data bench --bjepa "$BJEPA" one=entry.parquet \
        two=entry.parquet two=turn.parquet >table
    check python3 - <<'END_PYTHON'
import re
rows = {}
for line in open("score"):
    found = re.match(r"(\S+) +(\d) +([0-9.]+) \+- [0-9.]+ +([0-9.]+) \+- ", line)
    if found: rows[found[1]] = [float(x) for x in found.groups()[1:]]
assert list(rows) == ["entry.parquet", "turn.parquet", "constant-velocity-6", "constant-turn-rate",
                      "constant-velocity", "true-modes"], rows
assert rows["entry.parquet"] == rows["constant-velocity"] != rows["true-modes"]
assert rows["turn.parquet"] == rows["constant-turn-rate"]
table = dict((c[1].strip(), c[2:5]) for c in (x.split("|") for x in open("table")) if len(c) > 4)
rows["one"] = rows["entry.parquet"]
rows["means of the six heaviest true modes"] = rows["true-modes"]
for name in ("one", "means of the six heaviest true modes", "constant-velocity", "constant-turn-rate"):
    assert all(abs(float(x) - y) < 6e-4 for x, y in zip(table[name], rows[name])), (name, table, rows)
(a, b), two = (rows["entry.parquet"][1], rows["turn.parquet"][1]), table["two (2 seeds)"]
mean, sd = map(float, two[1].split("±"))
assert abs(mean - (a + b) / 2) < 6e-4 and abs(sd - abs(a - b) / 2 ** .5) < 6e-4, (two, a, b)
END_PYTHON
fi

# A law file that is not the standard one, and data that do not exist.
mkdir other
check "$BJEPA" simulate --cache other/val.bjc --scenes 5 --seed 20260 --split val -q >/dev/null
run 4 benchmark score entry.parquet --data other
err_has "this is not the distribution file of the standard benchmark: it has 5 scenes, expected 2000"
out_empty
run 5 benchmark score entry.parquet --data bench --split test
err_has "bench: found neither test/law.safetensors nor test.bjc.law.safetensors"
err_has "hint: 'bjepa benchmark make bench' writes the benchmark"
check "$BJEPA" baseline constant-velocity --data other/val.bjc --out short.parquet >/dev/null
run 4 benchmark score short.parquet --data bench -q
err_has "short.parquet: 1995 format violations; the first is no row, "

# Folders come before caches, and a step that fails ends the command.
mkdir -p folders/val
cp bench/val.bjc.law.safetensors folders/val/law.safetensors
run 3 benchmark make folders --split val
err_has "bjepa baseline constant-velocity --data folders/val --out folders/val-constant-velocity.parquet"
err_has "folders/val: found no scenario"
run 3 benchmark score entry.parquet --data folders

run 2 benchmark make bench --split train
err_has "--split is 'train', expected val or test"
run 2 benchmark score entry.parquet
err_has "--data DIR is missing"
run 2 benchmark score --data bench
run 5 benchmark make none/bench
run 0 benchmark --help
out_has "bjepa benchmark make bench"

finish
