# Tests bjepa baseline: submissions of fixed rules from folders and caches, formats, errors.
. "$BJ_ROOT/tests/support/cli.sh"

check "$BJEPA" simulate --out val --scenes 12 --seed 3 --split val -q >/dev/null
check "$BJEPA" simulate --cache val.bjc --scenes 12 --seed 3 --split val -q >/dev/null

for rule in constant-velocity constant-velocity-6 constant-turn-rate lane-following; do
    run 0 baseline $rule --data val --out $rule.parquet
    err_empty
    check test "$(cat out)" = "$rule.parquet: $rule, 12 scenes"
    run 0 score --check $rule.parquet
    out_has "12 scenarios"
done
run 0 baseline constant-turn-rate --data val.bjc -o other.parquet --json --threads 1
check test "$(cat out)" = \
    '{"schema":1,"type":"baseline","rule":"constant-turn-rate","file":"other.parquet","scenes":12}'
check cmp other.parquet constant-turn-rate.parquet

rm other.parquet
run 2 baseline lane-following --data val.bjc --out other.parquet
err_has "val.bjc: a cache does not contain the lane graph, expected a folder"
run 2 baseline constant-speed --data val --out other.parquet
err_has "'constant-speed' does not exist, expected constant-velocity, "
run 2 baseline constant-velocity --out other.parquet
err_has "--data DIR_OR_CACHE is missing"
run 2 baseline constant-velocity --data val
err_has "--out FILE.parquet is missing"
run 2 baseline --data val --out other.parquet
run 5 baseline constant-velocity --data nowhere --out other.parquet
err_has "nowhere: No such file"
run 5 baseline constant-velocity --data val --out nowhere/other.parquet
run 3 baseline constant-velocity --data val/law.safetensors --out other.parquet
out_empty
check test ! -e other.parquet

finish
