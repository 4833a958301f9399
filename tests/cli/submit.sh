# Tests bjepa submit: the submission of a checkpoint passes the check of bjepa score.
. "$BJ_ROOT/tests/support/cli.sh"
mkdir run
check "$TEST_SUBMIT" make run

run 0 submit run/model.safetensors run/test.bjc --out submission.parquet -j 2
check test "$(cat out)" = "submission.parquet: 70 scenes"
run 0 submit run run/test.bjc -o from_folder.parquet -j 1 --json
out_has '{"schema":1,"type":"submit","scenes":70}'
check cmp submission.parquet from_folder.parquet
run 0 score submission.parquet --av2 run/test.bjc
out_has "submission.parquet: 210 rows, 70 scenarios"
out_has "check: passed"
out_has "truth: 70 scenarios, 56 scored, 14 without a future"
run 0 submit run run/test.bjc -o half.parquet --precision bf16
run 0 submit --check half.parquet
out_has "check: passed"
check sh -c '! cmp -s submission.parquet half.parquet'

# Nothing is left behind by what fails.
run 3 submit "$BJ_ROOT/tests/golden/checkpoint_v1.safetensors" run/test.bjc --out bad.parquet
mkdir nothing
run 5 submit nothing run/test.bjc --out bad.parquet
err_has "nothing: no model.safetensors in it"
run 5 submit run none.bjc --out bad.parquet
run 5 submit run run/test.bjc --out nowhere/bad.parquet
run 3 submit run submission.parquet --out bad.parquet
check test ! -e bad.parquet
run 2 submit run run/test.bjc
err_has "--out FILE.parquet is missing"
run 2 submit run --out bad.parquet
err_has "found too few arguments, expected CHECKPOINT and CACHE"
run 2 submit --check submission.parquet run/test.bjc
run 2 submit run run/test.bjc --out x.parquet --precision fp8
check test -z "$(ls -A | grep tmp)"

finish
