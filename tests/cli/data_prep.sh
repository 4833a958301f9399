# Tests bjepa data prep and verify: exit codes, messages, and runs that are killed and resumed.
. "$BJ_ROOT/tests/support/cli.sh"
make=$TEST_MAKE_SCENARIOS

count=40
mkdir -p av2/train av2/val bad
"$make" av2/train 1 $((count - 10)) >ids
"$make" av2/val 500 10 >>ids
first=$(sort ids | head -1)

same() { cmp "$1" whole.bjc >/dev/null; verdict $? "$1 is not whole.bjc"; }
absent() { [ ! -e "$1" ]; verdict $? "$1 exists"; }

# ------------------------------------------------------------------------------------ a whole run

run 0 data prep --av2 av2 --out whole.bjc --jobs 2
out_has "whole.bjc: $count scenes"
err_has "$count scenarios, at most"
err_has "$count of $count scenes"
absent whole.bjc.partial
absent whole.bjc.rejects.jsonl
run 0 data verify whole.bjc
out_has "$count scenes, 0 damaged"
run 2 data prep --av2 av2 --out whole.bjc
err_has "already exists"
cp whole.bjc before.bjc
run 0 data prep --av2 av2 --out whole.bjc --force --jobs 1 -q
err_empty
same before.bjc

# Folders in any spelling, splits, limits, dry runs, JSON.
run 0 data prep --av2 av2/train av2/val -o a.bjc -q
same a.bjc
run 0 data prep --av2 av2/val --av2=av2/train -o b.bjc -q
same b.bjc
run 0 data prep -o c.bjc -q -- av2
same c.bjc
BJEPA_AV2=av2 run 0 data prep -o d.bjc -q
same d.bjc
run 0 data prep --av2 av2 --split val -o val.bjc --json -q
out_has '"type":"data_prep","cache":"val.bjc","dry_run":false,"complete":true,"found":10'
run 0 data prep --av2 av2 --limit 7 -o few.bjc
out_has 'few.bjc: 7 scenes'
run 0 data prep --av2 av2 --dry-run
out_has "found $count scenarios; the cache would take at most"
run 0 data prep --av2 av2 -o dry.bjc --dry-run --json
out_has "\"dry_run\":true,\"complete\":false,\"found\":$count"
absent dry.bjc
absent dry.bjc.partial
run 0 data prep --av2 "av2/train/$(head -1 ids)" -o one.bjc
out_has 'one.bjc: 1 scenes'

# ------------------------------------------------------------------------------------- misuse

run 2 data
err_has 'Usage: bjepa data VERB'
run 0 data --help
out_has 'verify'
run 2 data prap
err_has "did you mean 'prep'?"
run 2 data prep --out x.bjc
err_has 'expected --av2 DIR'
run 2 data prep --av2 av2
err_has '--out CACHE is missing'
run 2 data prep --av2 av2 -o x.bjc --split training
err_has "found 'training', expected train, val or test"
run 5 data prep --av2 nowhere -o x.bjc
err_has 'nowhere: cannot open'
run 3 data prep --av2 bad -o x.bjc
err_has 'bad: found no scenario'
run 5 data prep --av2 av2 -o nowhere/x.bjc
err_has 'nowhere/x.bjc: cannot open the directory'
run 5 data prep --av2 av2 -o av2 --force
err_has 'not a regular file'
absent x.bjc
absent x.bjc.partial
run 0 data prep --help
out_has 'bjepa data prep --av2'

# ------------------------------------------------------------------------------------- rejects

flaw=1
for code in parquet focal focal_missing_at_49 step nonfinite id_mismatch map missing_map \
    missing_scenario; do
    "$make" bad $((900 + flaw)) 1 $flaw >bad_$code
    flaw=$((flaw + 1))
done
mkdir again
cp -r "av2/train/$(head -1 ids)" again/ # twice the same id
run 3 data prep --av2 av2 bad again -o mixed.bjc --json
out_has "\"accepted\":$count,\"rejected\":10"
err_has '10 scenarios were rejected; mixed.bjc.rejects.jsonl lists the reasons'
same mixed.bjc
check [ "$(wc -l <mixed.bjc.rejects.jsonl)" -eq 10 ]
for code in parquet focal focal_missing_at_49 step nonfinite id_mismatch map missing_map \
    missing_scenario; do
    grep -F "\"code\":\"$code\"" mixed.bjc.rejects.jsonl | grep -qF "$(cat bad_$code)"
    verdict $? "no line about $code"
done
grep -F '"code":"duplicate"' mixed.bjc.rejects.jsonl | grep -qF 'skipped, because it has the same id as'
verdict $? "no line about the duplicate"
run 3 data prep --av2 av2 bad again -o strict.bjc --strict
absent strict.bjc
absent strict.bjc.rejects.jsonl
check [ -d strict.bjc.partial ]
run 3 data prep --av2 av2 bad again -o strict.bjc -q # continues
same strict.bjc
run 3 data prep --av2 bad -o none.bjc -q
absent none.bjc
absent none.bjc.partial
check [ -s none.bjc.rejects.jsonl ]
err_has 'none of'

# ------------------------------------------------------------------------------------- signals

# The run waits for a signal when it opens the sixth scenario.
. "$BJ_ROOT/tests/support/faults.sh"
held=$(sort ids | sed -n 6p)
interrupt() { # interrupt SIGNAL CODE
    set -m # or the shell makes background processes ignore SIGINT
    env LD_PRELOAD="$faults" FAULT_OPS=open FAULT_PATH="scenario_$held" FAULT_N=1 \
        FAULT_ACTION=WAIT "$BJEPA" data prep --av2 av2 -o sig.bjc --jobs 1 >out 2>err &
    local pid=$! code=0
    set +m
    last="data prep, then signal $1"
    for _ in $(seq 200); do # five scenes are in, the sixth is waited for
        [ "$(stat -c %s sig.bjc.partial/journal 2>/dev/null || echo 0)" -ge 5120 ] && break
        sleep 0.05
    done
    sleep 0.2 # until it waits
    kill -"$1" $pid
    wait $pid || code=$?
    [ "$code" -eq "$2" ]
    verdict $? "exit code $code after $1, expected $2"
    absent sig.bjc
    check [ -d sig.bjc.partial ]
}
if [ -n "$faults" ]; then
    # The caller of this test may have made it ignore SIGINT. TERM is used then.
    ignored=$(awk '/^SigIgn:/ { print substr($2, 16, 1) }' /proc/self/status)
    case $ignored in
    2 | 3 | 6 | 7 | a | b | e | f) interrupt TERM 143 ;;
    *) interrupt INT 130 ;;
    esac
    err_has 'hint: run the same command again to continue'
    run 0 data prep --av2 av2 -o sig.bjc
    err_has ' already done'
    same sig.bjc
    rm sig.bjc
    interrupt TERM 143

    # Only one process at a time.
    exec 9<sig.bjc.partial
    flock -n 9 && run 4 data prep --av2 av2 -o sig.bjc && err_has 'another process is writing it'
    exec 9<&-
    run 0 data prep --av2 av2 -o sig.bjc -q
    same sig.bjc
fi

# Killed again and again, at any moment, with any number of workers.
kills=0 code=1
for attempt in $(seq 60); do
    "$BJEPA" data prep --av2 av2 bad again -o killed.bjc --jobs $((1 + attempt % 3)) -q >out 2>err &
    pid=$!
    if [ "$attempt" -lt 60 ]; then
        sleep 0.0$((RANDOM % 10))$((RANDOM % 10))
        kill -9 $pid 2>/dev/null && kills=$((kills + 1))
    fi
    code=0
    wait $pid 2>/dev/null || code=$?
    [ "$code" -eq 137 ] || break
done
# 2: killed when all was done but the exit.
[ "$code" -eq 3 ] || { [ "$code" -eq 2 ] && grep -q 'already exists' err; }
verdict $? "after $kills kills the run ended with $code, expected 3"
same killed.bjc
absent killed.bjc.partial
cmp -s killed.bjc.rejects.jsonl mixed.bjc.rejects.jsonl
verdict $? "after $kills kills the list of rejects differs"
run 0 data verify -q killed.bjc

# Killed after the cache was published: the next run tidies up and is content.
cp whole.bjc published.bjc
mkdir published.bjc.partial
touch published.bjc.partial/facts
run 0 data prep --av2 av2 -o published.bjc
out_has "published.bjc: $count scenes"
absent published.bjc.partial

# ---------------------------------------------------------------------------------- full disks

last='data prep with a limit of 512 KiB for files'
code=0
(ulimit -f 512 && exec "$BJEPA" data prep --av2 av2 -o full.bjc) >out 2>err || code=$?
[ "$code" -eq 5 ]
verdict $? "exit code $code, expected 5"
err_has 'full.bjc.partial/records: cannot write'
err_has 'hint: run the same command again to continue'
absent full.bjc
run 0 data prep --av2 av2 -o full.bjc
err_has ' already done'
same full.bjc

if [ "$(id -u)" -ne 0 ]; then
    mkdir readonly
    chmod a-w readonly
    run 5 data prep --av2 av2 -o readonly/x.bjc
    err_has 'cannot create the folder'
fi

# ------------------------------------------------------------------------------------- verify

cp whole.bjc damaged.bjc
printf 'x' | dd of=damaged.bjc bs=1 seek=65600 conv=notrunc 2>/dev/null
run 4 data verify damaged.bjc
out_has "scene '$first'"
out_has '1 damaged'
run 4 data verify --json damaged.bjc
out_has "\"scenario_id\":\"$first\",\"scene\":0"
head -c 100000 whole.bjc >short.bjc
run 3 data verify short.bjc
run 5 data verify nowhere.bjc
run 2 data verify
finish
