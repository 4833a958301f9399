# Tests bjepa bench: the JSON keys, the number of threads, invalid options.
. "$BJ_ROOT/tests/support/cli.sh"

number() { # number KEY: its value in the JSON of out
    sed -n "s/.*\"$1\": \([0-9.e+-]*\)[,}].*/\1/p" out
}
positive() { awk -v x="$1" 'BEGIN { exit !(x > 0) }'; }

run 0 bench --rounds 1 --json --threads 1
err_empty
out_has '"schema": 1, "type": "bench"'
for key in train256_ms infer1_ms infer64_ms infer1_bf16_ms peak_rss_mib threads; do
    check positive "$(number "$key")"
done
check test "$(number threads)" -eq 1
check grep -qE '"isa": "(c|avx2|avx512)"' out
if command -v python3 >/dev/null; then check python3 -m json.tool out json; fi

# 0 is one thread for each core, and what is printed is how many that were.
run 0 bench --only infer --rounds 1 --json --threads 0
check test "$(number threads)" -eq "$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)"
out_lacks train256_ms
if command -v taskset >/dev/null; then
    first=$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')
    code=0
    taskset -c "$first" "$BJEPA" bench --only infer --rounds 1 --json --threads 0 >out || code=$?
    check test "$code" -eq 0
    check test "$(number threads)" -eq 1
fi

run 0 bench --only train --rounds 1 --busy
out_has "with one core busy"
out_has "training step, batch 256"
out_has "peak memory"
out_lacks "prediction"

run 2 bench --rounds 0
err_has "--rounds: found '0', expected an integer from 1 to 150"
run 2 bench --only trian
err_has "did you mean 'train'?"
run 2 bench --isa sse9
out_empty
err_has "instruction set 'sse9' is not available, expected one of: c"

# Two builds in turns. A library with a sanitizer does not load into a program without.
if [ -z "$BJ_SANITIZE" ]; then
    cp "$BJ_BUILD/libbranchjepa.so" one.so
    cp "$BJ_BUILD/libbranchjepa.so" two.so
    compare=$BJ_ROOT/bench/compare_builds.sh
    for work in train predict64 predict1; do
        check bash "$compare" -n 1 -t 1 -w "$work" ./one.so ./two.so >out
        check test "$(grep -cE '^ *[0-9.]+ +[0-9.]+ +[0-9.]+ \(.* to .*\) +\./(one|two)\.so$' out)" -eq 2
    done
    code=0
    bash "$compare" -n 1 ./three.so >out 2>err || code=$?
    check test "$code" -eq 1
    err_has "three.so"
    code=0
    bash "$compare" -w walk ./one.so >out 2>err || code=$?
    check test "$code" -eq 2
    err_has "usage:"
fi

finish
