# Tests that an input/output error at any call that reads a campaign, a cache or a law ends the
# command with exit code 5, or does not change its output.
. "$BJ_ROOT/tests/support/cli.sh"
. "$BJ_ROOT/tests/support/small_campaign.sh"
. "$BJ_ROOT/tests/support/in_memory.sh"
. "$BJ_ROOT/tests/support/faults.sh"
[ -n "$faults" ] || { echo "skipped: a sanitizer build"; exit 77; }

check small_campaign camp fullset point

# every OPS PATH OUTPUT ARGUMENT...: a fault at every call of OPS on files whose path contains PATH.
every() {
    local ops=$1 output=$3 count n same=0 ended=0
    fault_path=$2
    shift 3
    rm -f "$output"
    run 0 "$@"
    mv "$output" expected
    count=$(calls "$ops" "$@")
    rm -f "$output"
    [ "$count" -gt 0 ]
    verdict $? "$count calls on $fault_path"
    for n in $(seq 1 "$count"); do
        fault EIO "$ops" "$n" "$@"
        if [ "$code" -eq 0 ]; then
            cmp -s expected "$output"
            verdict $? "exit code 0 with another $output"
            same=$((same + 1))
        else
            [ "$code" -eq 5 ] && [ ! -e "$output" ]
            verdict $? "exit code $code"
            ended=$((ended + 1))
        fi
        rm -f "$output"
    done
    echo "$1 $fault_path: $count calls, $ended exits with 5, $same with the same output"
}

ops=open,read,stat,map
every $ops camp/ rows.csv audit camp --data val.bjc --a fullset --b point --rows rows.csv -q -j 1
every stat val.bjc page.html report camp --scenes val.bjc --out page.html --count 2 --threads 1
every stat result.json page.html report camp --scenes val.bjc --out page.html --count 2 --threads 1
every $ops val.bjc view.html view camp/runs/fullset/seed-0 --av2 val.bjc --count 2 --out view.html
finish
