# Tests that `simulate --cache` and `data prep` can be killed at every call that changes the disk, and
# fail at every such call: the next run finishes with the same bytes and leaves nothing behind.
. "$BJ_ROOT/tests/support/cli.sh"
. "$BJ_ROOT/tests/support/in_memory.sh"
. "$BJ_ROOT/tests/support/faults.sh"
[ -n "$faults" ] || { echo "skipped: a sanitizer build"; exit 77; }


sums() { find . -type f ! -name '.*.tmp' -exec sha256sum {} + | sort; }

# points NAME ARGUMENT...: NAME.bjc is the output of the command in the folder `here`.
points() {
    local name=$1 count action ops n ends
    shift
    mkdir reference here
    (cd reference && "$BJEPA" "$@" >/dev/null 2>&1 && sums) >expected
    for action in KILL EIO; do
        ops=write,rename,mkdir,unlink,truncate # a kill at another call leaves nothing new
        [ $action = KILL ] || ops=$ops,sync,lock,open,read,stat,map
        count=$(cd reference && calls $ops "$@" --force)
        echo "$name: $count calls"
        [ "$count" -gt 20 ]
        verdict $? "$name: $count calls"
        for n in $(seq 1 "$count"); do
            rm -rf here && mkdir here && cd here || exit 1
            (fault $action $ops "$n" "$@"; rm -f out err; exit "$code")
            ends=$?
            # Without the fault, the same command finishes, or finds the finished cache.
            code=0
            "$BJEPA" "$@" >../out 2>../err || code=$?
            cd ..
            [ "$code" -eq 0 ] || { [ "$code" -eq 2 ] && [ -e "here/$name.bjc" ] && grep -q already err; }
            verdict $? "$action: exit code $ends, then $code"
            (cd here && sums) >found
            cmp -s expected found && [ ! -e "here/$name.bjc.partial" ]
            verdict $? "$action: other files"
        done
    done
    rm -rf reference here
}

points sim simulate --cache sim.bjc --scenes 20 --seed 5 --jobs 1 -q

"$BJEPA" simulate --out world/train --scenes 4 --seed 5 --jobs 1 -q >/dev/null
points prep data prep --av2 "$PWD/world" --split train --out prep.bjc --jobs 1 -q
finish
