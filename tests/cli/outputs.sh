# Tests the verbs that write one output file or folder: hidden files of dead processes are removed, a
# reused process id causes no error, SIGTERM leaves nothing behind, and symbolic links are followed.
. "$BJ_ROOT/tests/support/cli.sh"
. "$BJ_ROOT/tests/support/small_campaign.sh"
. "$BJ_ROOT/tests/support/in_memory.sh"
. "$BJ_ROOT/tests/support/faults.sh"

check small_campaign camp fullset point
model=camp/runs/fullset/seed-0/ckpt/best
check "$BJEPA" predict $model val.bjc --limit 3 --threads 1 --json --out p.jsonl
check "$BJEPA" submit $model val.bjc --out sub.parquet --threads 1 >/dev/null

# Every line is an output, then the command that writes it.
verbs="page.html report camp --out page.html --threads 1
figs/summary.svg figures camp --out figs --format svg
rows.jsonl predict $model val.bjc --limit 3 --json --out rows.jsonl --threads 1
rows.csv audit $model --data val.bjc --rows rows.csv -q -j 1
view.html view sub.parquet --av2 val.bjc --count 2 --out view.html
scene.svg data show val.bjc #1 --out scene.svg
world.svg world show val.bjc --scene #1 --out world.svg
s.parquet submit $model val.bjc --out s.parquet --threads 1
model.safetensors export $model --out model.safetensors
gal gallery lock camp --data val.bjc --out gal -q -j 1"

hidden() { find . -name '.*.tmp' | grep -v '^./camp/' | sort; }

# The shell becomes bjepa, so the leftovers have its process id.
mkdir figs
while read -r output arguments; do
    folder=$(dirname "$output")
    name=$(basename "$output")
    last="$arguments, after a crash of the same process id"
    code=0
    sh -c 'case $1 in *gal) make=mkdir ;; *) make=touch ;; esac
        $make "$0/.$1.$$.tmp" "$0/.$1.$$-0.tmp" "$0/.$1.1-0.tmp"; shift 1; exec "$@"' \
        "$folder" "$name" "$BJEPA" $arguments >out 2>err || code=$?
    [ "$code" -eq 0 ] && [ -e "$output" ]
    verdict $? "exit code $code"
    find . -name ".$name.*.tmp" ! -name '*-*' -prune -exec rm -r {} + # named like older versions
    [ -z "$(hidden)" ]
    verdict $? "leftovers: $(hidden)"
    rm -rf "$output"
done <<END_VERBS
$verbs
END_VERBS

# SIGTERM while the output is being synced removes the hidden file.
if [ -n "$faults" ]; then
    while read -r output arguments; do
        last="$arguments, SIGTERM"
        rm -rf "$output"
        env LD_PRELOAD="$faults" FAULT_OPS=sync FAULT_PATH="$PWD/" FAULT_N=1 FAULT_ACTION=WAIT \
            "$BJEPA" $arguments >out 2>err &
        for _ in $(seq 200); do
            [ -n "$(hidden)" ] && grep -q ' pause\| S' /proc/$!/stat && break
            sleep 0.05
        done
        sleep 0.1
        [ -n "$(hidden)" ]
        verdict $? "no hidden file"
        kill -TERM $!
        code=0
        wait $! || code=$?
        # Verbs that stop at the next safe point may finish the output instead.
        [ "$code" -eq 143 ] || { [ "$code" -eq 0 ] && [ -e "$output" ]; }
        verdict $? "exit code $code"
        [ -z "$(hidden)" ]
        verdict $? "leftovers: $(hidden)"
    done <<END_VERBS
$verbs
END_VERBS
fi

# An output that is a symbolic link is written through the link, which stays a link. A broken link
# is an error.
while read -r output arguments; do
    [ "$output" = gal ] && continue # an existing gallery is never replaced
    rm -rf "$output" target
    echo old >target
    ln -s "$PWD/target" "$output"
    run 0 $arguments
    [ -L "$output" ] && [ "$(head -c 4 target)" != old ]
    verdict $? "$output: the link was replaced"
    rm target
    run 5 $arguments
    err_has "broken symbolic link"
    rm "$output"
done <<END_VERBS
$verbs
END_VERBS
finish
