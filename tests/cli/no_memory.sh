# Tests that an allocation that fails ends `report` and `view` with exit code 5, or does not change the
# page. `make torture` covers the other verbs.
. "$BJ_ROOT/tests/support/cli.sh"
. "$BJ_ROOT/tests/support/small_campaign.sh"
. "$BJ_ROOT/tests/support/in_memory.sh"
. "$BJ_ROOT/tests/support/faults.sh"
[ -n "$faults" ] || { echo "skipped: a sanitizer build"; exit 77; }

check small_campaign camp point
check "$BJEPA" submit camp/runs/point/seed-0/ckpt/best val.bjc --out sub.parquet --threads 1 >/dev/null

# every STEP ARGUMENT...: fails every STEP-th allocation in turn.
every() {
    local step=$1 count n ended=0 same=0
    shift
    run 0 "$@" --out expected.html
    count=$(calls alloc "$@" --out page.html)
    for n in $(seq 1 "$step" "$count"); do
        rm -f page.html
        fault EIO alloc "$n" "$@" --out page.html
        if [ "$code" -eq 0 ]; then
            cmp -s expected.html page.html
            verdict $? "exit code 0 with another page"
            same=$((same + 1))
        else
            [ "$code" -eq 5 ] && [ ! -e page.html ] && [ -s err ]
            verdict $? "exit code $code"
            ended=$((ended + 1))
        fi
    done
    echo "$1: $count allocations, $ended exits with 5, $same with the same page"
    [ "$ended" -gt 0 ]
    verdict $? "no exit with 5"
}

every 13 report camp --scenes val.bjc --count 4 --threads 1
every 5 view sub.parquet --av2 val.bjc --count 4
finish
