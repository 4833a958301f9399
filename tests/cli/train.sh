# Tests bjepa train: settings and their origins, the run folder, signals, full disks, divergence, gates,
# warnings, progress. tests/cli/train_kill.sh kills runs, and tests/run tests the library.
. "$BJ_ROOT/tests/support/cli.sh"
unset BJEPA_ARM BJEPA_SEED BJEPA_RECIPE BJEPA_CONFIG BJEPA_SET BJEPA_DATA BJEPA_DEV BJEPA_OUT
. "$BJ_ROOT/tests/support/in_memory.sh"

"$BJEPA" simulate --world 1 --cache t.bjc --scenes 120 --seed 3 --jobs 1 -q >/dev/null || exit 1
"$BJEPA" simulate --cache other.bjc --scenes 60 --seed 4 --jobs 1 -q >/dev/null || exit 1
cat >tiny.yaml <<'END'
# a model that trains in no time
model: {embed: 8, heads: 2, token_hidden: 8, latent: 8, proj_hidden: 8, atom_hidden: 8,
        router_hidden: 8, decoder_hidden: 8, trunk: 8}
train: {batch: 32, epochs: 2, warmup: 1}
END
train="train --data t.bjc -c tiny.yaml -j 1"

fact() { # fact RUN KEY: a value of manifest.json, whose keys are unique where this is used
    sed -n "s/^ *\"$2\": *\"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}$/\1/p" "$1/manifest.json" | head -1
}
is() { [ "$1" = "$2" ]; verdict $? "found '$1', expected '$2'"; }
weights() { (cd "$1" && sha256sum ckpt/*/*.safetensors); }
same() { # same RUN: checkpoints with the bytes of the run in ref
    weights "$1" >"$1.sums"
    check cmp ref.sums "$1.sums"
    is "$(wc -l <"$1.sums")" 4
}
few_scenes_only() { # stderr must contain the warning about few development scenes and nothing else
    is "$(wc -l <err)" 1
    err_has "warning: 10 development scenes: the checkpoint choice is mostly noise"
}
parses() { # parses FILE...: every one is JSON, of every line for .jsonl
    command -v python3 >/dev/null || return 0
    check python3 - "$@" <<'END'
import json, sys
for path in sys.argv[1:]:
    text = open(path).read()
    for piece in text.splitlines() if path.endswith("l") else [text]:
        assert json.loads(piece)["schema"].startswith("branchjepa."), path
END
}

# ------------------------------------------------------------------------------------------ misuse

run 2 train --arm fullset --out x
err_has "--data FILE is missing"
run 2 train --arm fullset --data t.bjc
err_has "--out DIR is missing"
run 2 train --data t.bjc --out x
err_has "'arm' is missing"
run 2 $train --arm fulset --out x
err_has "did you mean 'fullset'?"
run 2 $train --arm fullset --out x --set optim.lr=2
err_has "--set: optim.lr"
run 2 $train --arm anchor-b --out x
err_has "anchor"
run 5 train --data none.bjc --arm fullset --out x
err_has "none.bjc"
check test ! -e x
run 0 train --help
out_has "--resume"

# ----------------------------------------------------------------------------------- one whole run

run 0 $train --arm fullset --seed 7 --out one
out_has "fullset, seed 7: 2 epochs, 8 updates over 110 scenes"
out_has "checkpoint  one/ckpt/best"
err_has "epoch 0: dev ES "
err_has "epoch 2: dev ES "
err_has " tokens, context norm "
err_has ", exchanged map "
err_has "best so far"
check cmp tiny.yaml one/config.yaml
for file in manifest.json config.yaml config.resolved.json metrics.jsonl metrics.csv status.json \
    result.json ckpt/last/model.safetensors ckpt/last/state.safetensors \
    ckpt/best/model.safetensors ckpt/best/state.safetensors; do
    check test -s "one/$file"
done
check test ! -e one/failures.jsonl
is "$(wc -l <one/metrics.jsonl)" 3
is "$(wc -l <one/metrics.csv)" 4
is "$(ls one/events.out.tfevents.* | wc -l)" 1
parses one/manifest.json one/status.json one/result.json one/metrics.jsonl
check grep -q '"phase":"done"' one/status.json
is "$(fact one recipe)" paper
is "$(fact one seed)" 7
check grep -q '"outcome": "done"' one/result.json
is "$(sed -n 's/.*"model.safetensors": "\(.*\)",/\1/p' one/result.json)" \
    "$(sha256sum <one/ckpt/best/model.safetensors | cut -d' ' -f1)"

# The settings a run keeps train the same again, and JSON says how it went.
run 0 train --data t.bjc -c one/config.resolved.json --out copy -j 3 -q --json
few_scenes_only
out_has '{"schema":"branchjepa.train/1","outcome":"done","run":"copy","arm":"fullset","seed":7,'
weights one >one.sums
weights copy >copy.sums
check cmp one.sums copy.sums

# A folder that holds a run, a run that is over, other settings, other data.
run 2 $train --arm fullset --seed 7 --out one
err_has "one: already contains a run"
run 0 $train --arm fullset --seed 7 --out one --resume
out_has "best epoch "
run 4 $train --arm mdn --seed 7 --out one --resume
err_has "arm was 'fullset' and is now 'mdn'"
run 4 $train --arm fullset --seed 7 --out one --resume --set optim.lr=1e-3
err_has "optim.lr was '0.0003' and is now '0.001'"
run 4 train --data other.bjc -c tiny.yaml --arm fullset --seed 7 --out one --resume
err_has "different data: data.digest was "
weights one >after.sums
check cmp one.sums after.sums

# -------------------------------------------------------------------------------------- precedence

printf 'arm: fullset\nseed: 3\n' | cat - tiny.yaml >seeded.yaml
seeded="train --data t.bjc -c seeded.yaml -j 1 -q --set train.epochs=1"
run 0 $seeded --out p1
is "$(fact p1 seed)" 3
BJEPA_SEED=4 run 0 $seeded --out p2
is "$(fact p2 seed)" 4
BJEPA_SEED=4 run 0 $seeded --out p3 --seed 5
is "$(fact p3 seed)" 5
BJEPA_SEED=4 run 0 $seeded --out p4 --set seed=6
is "$(fact p4 seed)" 6
run 0 $train --arm fullset --out p5 -q --set train.epochs=1
is "$(fact p5 seed)" 0
BJEPA_RECIPE=small run 0 $train --arm fullset --out p6 -q --set train.epochs=1
is "$(fact p6 recipe)" small
# The same order of scenes for both arms of a seed, another one for another seed.
run 0 $train --arm softwta --out p7 -q --set train.epochs=1
for key in encoder branches router decoder dev_sha256; do
    is "$(fact p7 $key)" "$(fact p5 $key)"
done
is "$(grep -A1 '"order"' p7/manifest.json)" "$(grep -A1 '"order"' p5/manifest.json)"
check test "$(grep -A1 '"order"' p1/manifest.json)" != "$(grep -A1 '"order"' p5/manifest.json)"
check test "$(fact p1 encoder)" != "$(fact p5 encoder)"
is "$(fact p1 dev_sha256)" "$(fact p5 dev_sha256)"

# ----------------------------------------------------------------------------------------- signals

long="$train --arm fullset --set train.epochs=24"
last="$long --out ref"
run 0 $long --out ref -q
weights ref >ref.sums

begun() { # begun RUN LINES: waits until so many epochs are told
    local i
    for i in $(seq 3000); do
        [ "$(cat "$1/metrics.jsonl" 2>/dev/null | wc -l)" -ge "$2" ] && return 0
        sleep 0.01
    done
    false
    verdict $? "$1 begins"
}
start() { # start RUN ARGUMENT...: in the background, its number in $pid
    local dir=$1
    shift
    last="$long --out $dir $*"
    "$BJEPA" $long --out "$dir" "$@" >out 2>err &
    pid=$!
}
ends() { # ends CODE: the process of start
    local code=0
    wait "$pid" || code=$?
    [ "$code" -eq "$1" ]
    verdict $? "exit code $code, expected $1"
}

for signal in INT:130 TERM:143; do
    dir=stop_${signal%:*}
    # A shell's background jobs ignore SIGINT, and bjepa leaves that as it is.
    [ "${signal%:*}" = TERM ] || set -m
    start "$dir"
    set +m
    begun "$dir" 3
    kill -"${signal%:*}" "$pid"
    ends "${signal#*:}"
    err_has "all progress is saved"
    check test ! -e "$dir/result.json"
    check grep -q '"phase":"stopped"' "$dir/status.json"
    cp -r "$dir" "$dir.kept"
    run 0 $long --out "$dir" --resume
    same "$dir"
    is "$(wc -l <"$dir/metrics.jsonl")" 25
    rm -rf "$dir"
done

start usr -q
for i in 3 6 9; do
    begun usr $i
    kill -USR1 "$pid"
done
ends 0
same usr

# Two processes, one folder.
start busy
begun busy 2
code=0
"$BJEPA" $long --out busy --resume >out2 2>err2 || code=$?
is "$code" 4
check grep -q "another process is training in this folder" err2
code=0
"$BJEPA" $long --out busy >out2 2>err2 || code=$?
is "$code" 4
ends 0
same busy

# --------------------------------------------------------------------------------------- full disks

size=$(wc -c <ref/ckpt/last/state.safetensors)
cp -r stop_INT.kept full
last="$long --out full --resume, files of at most $((size / 2048)) KiB"
code=0
(ulimit -f $((size / 2048)) && exec "$BJEPA" $long --out full --resume) >out 2>err || code=$?
is "$code" 5
err_has "full/ckpt/"
err_has "state.safetensors: cannot write"
check grep -q 'state.safetensors: cannot write' full/failures.jsonl
parses full/failures.jsonl full/status.json
check cmp stop_INT.kept/ckpt/last/model.safetensors full/ckpt/last/model.safetensors
check cmp stop_INT.kept/ckpt/last/state.safetensors full/ckpt/last/state.safetensors
run 0 eval full/ckpt/last --data t.bjc -q
is "$(find full -name '*.tmp' | wc -l)" 0
run 0 $long --out full --resume -q
same full

# From the very beginning.
code=0
(ulimit -f $((size / 2048)) && exec "$BJEPA" $long --out small_disk) >out 2>err || code=$?
is "$code" 5
err_has "state.safetensors: cannot write"
run 0 $long --out small_disk --resume -q
same small_disk

# Folders that cannot be written to.
run 5 $long --out t.bjc/run
err_has "t.bjc/run: cannot create the folder: Not a directory"
mkdir readonly
if unshare -m bash -c 'mount --bind readonly readonly && mount -o remount,ro,bind readonly' \
    2>/dev/null; then
    last="$long --out readonly/run"
    code=0
    unshare -m bash -c "mount --bind readonly readonly && mount -o remount,ro,bind readonly &&
        exec \"$BJEPA\" $long --out readonly/run" >out 2>err || code=$?
    is "$code" 5
    err_has "readonly/run: cannot create the folder: Read-only file system"
else
    echo "skipped: a folder that is read-only, for which this user may not mount"
fi

# --------------------------------------------------------------------------------------- divergence

far="$train --arm fullset --out far --set optim.lr=1 --set optim.weight_decay=100
    --set train.warmup=0 --set train.batch=4"
run 3 $far
err_has "bjepa train: epoch 1, update "
err_has " (scenario "
err_has "; the previous state is in ckpt/last"
grep '^bjepa train' err >first
parses far/failures.jsonl
check grep -q '"epoch":1,.*"message":"epoch 1, update ' far/failures.jsonl
check grep -q '"phase":"failed"' far/status.json
run 3 $far --resume
grep '^bjepa train' err >second
check cmp first second
is "$(wc -l <far/failures.jsonl)" 2

# ------------------------------------------------------------------------------------------- gates

run 4 $train --arm anchor-a --out none --set gate.ade=1e-6 -q
out_empty
err_has "bjepa train: none of the 2 epochs passed every gate, so the run has no anchor"
err_has "decoder ADE (m)                expected <= 1e-06   best "
err_has "entropy rank of the latents    expected >= 8 "
check grep -q '"outcome": "no_pass"' none/result.json
check test ! -e none/ckpt/best
run 4 $train --arm anchor-a --out none --set gate.ade=1e-6 -q --resume --json
out_has '"outcome":"no_pass"'
err_has "none of the 2 epochs passed every gate"

open="--set gate.ade=1e6 --set gate.fde=1e6 --set gate.std=0 --set gate.low_std=1 --set gate.rank=0"
run 0 $train --arm anchor-a --out stage_a $open
err_has "gates passed, best so far"
out_has "development decoder ADE "
for arm in anchor-b anchor-b-point; do
    run 0 $train --arm $arm --out $arm --set anchor=stage_a/ckpt/best
    out_has "$arm, seed 0: 2 epochs"
    began=$(grep -A1 '"anchor"' $arm/manifest.json | sed -n 's/.*"sha256": "\(.*\)"/\1/p')
    is "${#began}" 64
    check grep -q "\"sha256_before\": \"$began\"" $arm/result.json
    check grep -q "\"sha256_after\": \"$began\"" $arm/result.json
done
run 5 $train --arm anchor-b --out x --set anchor=none/ckpt/best
err_has "none/ckpt/best/model.safetensors"

# ---------------------------------------------------------------------------------------- warnings

# A target that follows at once, and nothing but it to please.
run 0 $train --arm fullset --out flat --set optim.ema=0 --set loss.decoded=0 --set loss.rec=0 \
    --set optim.lr=0.1 --set train.warmup=0 --set train.epochs=6 -q
err_has "warning: epoch 1: the target latents have collapsed (standard deviation "
run 0 $train --arm fullset --out fine -q
few_scenes_only
# Two development scenes always have rank 1: no alarm, but a warning about their number.
"$BJEPA" simulate --world 1 --cache two.bjc --scenes 30 --seed 3 --jobs 1 -q >/dev/null || exit 1
run 0 train --data two.bjc -c tiny.yaml --set train.batch=8 --arm fullset --out two -j 1 -q
check grep -qE "^warning: [2-7] development scenes: the checkpoint choice is mostly noise; expected at least 32 scenes$" err
check sh -c '! grep -q collapsed err'
# A tiny network that learns to follow the focal track and nothing else.
run 0 $train --arm fullset --out blind --set optim.lr=0.01 --set train.epochs=60 -q
err_has "the model is blind to the map: exchanging maps between scenes changes the Energy Score by "
grep 'blind to the map' err >blind.txt
check test "$(sed 's/.*epoch \([0-9]*\):.*/\1/' blind.txt | sort -n | head -1)" -gt 30

# ---------------------------------------------------------------------------------------- progress

if command -v script >/dev/null; then
    last="train on a terminal"
    TERM=xterm script -qec "stty cols 80; $BJEPA $long --out tty" /dev/null >tty.txt 2>&1 </dev/null
    verdict $? "exit code on a terminal"
    tr '\r' '\n' <tty.txt >tty.lines
    check grep -qE '^\[[#.]+\] +[0-9]+ %  [0-9]+ scenes/s  ([0-9:]+ left  )?[0-9]+/24 loss [0-9.]+ \(z [0-9.]+ y [0-9.]+ rec' \
        tty.lines
    check grep -q '^epoch 24: dev ES ' tty.lines
    check grep -q "$(printf '\033\\[33mwarning:\033\\[0m 10 development scenes')" tty.lines
    TERM=xterm NO_COLOR=1 script -qec "$BJEPA $train --arm fullset --out plain" /dev/null >plain.txt 2>&1 \
        </dev/null
    check grep -q "warning: 10 development scenes" plain.txt
    check sh -c '! grep -q "$(printf "\033")" plain.txt'
    is "$(grep '^\[' tty.lines | awk 'length > 79' | wc -l)" 0
    same tty
else
    echo "skipped: the bar on a terminal; script (bsdutils) is not installed"
fi

finish
