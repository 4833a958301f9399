# Tests bjepa train --resume --extend: more epochs for a finished run, kill -9, campaigns and their lock.
# tests/run/test_extend.c tests the library.
. "$BJ_ROOT/tests/support/cli.sh"
. "$BJ_ROOT/tests/support/small_campaign.sh"
unset BJEPA_ARM BJEPA_SEED BJEPA_RECIPE BJEPA_CONFIG BJEPA_SET BJEPA_DATA BJEPA_DEV BJEPA_OUT BJEPA_EXTEND
. "$BJ_ROOT/tests/support/in_memory.sh"
seed=${BJ_KILL_SEED:-$(($(date +%s) % 30000))}
RANDOM=$seed
echo "BJ_KILL_SEED=$seed"

"$BJEPA" simulate --world 1 --cache t.bjc --scenes 120 --seed 3 --jobs 1 -q >/dev/null || exit 1
cat >tiny.yaml <<'END'
model: {embed: 8, heads: 2, token_hidden: 8, latent: 8, proj_hidden: 8, atom_hidden: 8,
        router_hidden: 8, decoder_hidden: 8, trunk: 8}
train: {batch: 16, epochs: 3, warmup: 1}
END

is() { [ "$1" = "$2" ]; verdict $? "found '$1', expected '$2'"; }
weights() { (cd "$1" && sha256sum ckpt/*/*.safetensors); }
epochs() { sed 's/"wall_s":[^,]*,//; s/"scenes_per_s":[^,]*,//' "$1/metrics.jsonl"; }
rate() { sed -n "$((1 + $2))s/.*\"lr\":\([^,]*\),.*/\1/p" "$1/metrics.jsonl"; }

run 0 train --data t.bjc -c tiny.yaml --arm fullset --seed 1 --out base -q

# ------------------------------------------------------------------------------------------ messages

run 2 train --out base --extend 3
err_has "--extend needs --resume, because it continues a finished run"
run 2 train --out base --resume --extend 0
err_has "--extend: found '0'"
run 2 train --out base --resume --extend 1
err_has "base: an extension by 1 epochs has 7 updates, expected more than the 7 updates of the warm-up"
run 2 train --out none --resume --extend 3
err_has "none: contains no run to resume"
run 2 train --data t.bjc -c tiny.yaml --arm fullset --out none --resume --extend 3
err_has "none: contains no run to extend"
check test ! -e none
check test -e base/result.json

# ----------------------------------------------------------------------------------------- extending

cp -r base ref
run 0 train --out ref --resume --extend 8 -j 1
out_has "fullset, seed 1: 11 epochs, 77 updates over 110 scenes"
err_has "extend: 8 epochs after epoch 3 (update 21), with a new learning rate cycle"
err_has "epoch 4: dev ES "
is "$(wc -l <ref/metrics.jsonl)" 12
is "$(rate ref 1)" 0.0003
is "$(rate ref 4)" 0.0003
check test "$(rate ref 3)" != 0.0003
is "$(ls ref/events.out.tfevents.* | wc -l)" 2
check grep -q '"epochs":11,"step":77,"steps":77' ref/status.json
check grep -q '"epochs": 11' ref/result.json
is "$(tr -d ' \n' <ref/manifest.json | sed 's/.*"extensions":\[\(.*\)\].*/\1/')" '{"epochs":8,"step":21}'
tr -d ' \n' <base/manifest.json | sed 's/}$//' >before
check grep -qF "$(cat before)" <(tr -d ' \n' <ref/manifest.json)
check cmp base/config.resolved.json ref/config.resolved.json
run 0 eval ref --data t.bjc -q
# Without --extend it is finished.
weights ref >ref.sums
epochs ref >ref.epochs
run 0 train --out ref --resume
out_has "11 epochs"
weights ref >again.sums
check cmp ref.sums again.sums

# The same command, killed at random moments, does not extend twice.
kills=0
for i in 1 2 3; do
    rm -rf killed
    cp -r base killed
    for j in 1 2 3 4 5; do
        "$BJEPA" train --out killed --resume --extend 8 -q -j $((1 + RANDOM % 2)) >out 2>err &
        pid=$!
        sleep "0.$((100 + RANDOM % 300))"
        kill -9 "$pid" 2>/dev/null
        code=0
        wait "$pid" 2>/dev/null || code=$?
        [ "$code" -eq 0 ] || [ "$code" -eq 137 ]
        verdict $? "exit code $code after $kills kills"
        [ "$code" -ne 137 ] || kills=$((kills + 1))
        # After the end, the command would extend once more.
        [ ! -e killed/result.json ] || [ "$(wc -l <killed/metrics.jsonl)" -lt 12 ] || break
    done
    run 0 train --out killed --resume -q
    weights killed >killed.sums
    check cmp ref.sums killed.sums
    epochs killed >killed.epochs
    check cmp ref.epochs killed.epochs
done
echo "$kills kills"

# ----------------------------------------------------------------------------------------- fresh scenes

fresh="train -c tiny.yaml --arm fullset --dev t.bjc -q -j 1"
run 0 $fresh --data world:7:192 --out counted
run 2 train --out counted --resume --extend 3 -q
err_has "counted: world:7:192 has 192 scenes, but the extension needs 384"
check test -e counted/result.json
run 0 $fresh --data world:7 --set train.updates=4 --out endless
run 0 train --out endless --resume --extend 3 -q
out_has "6 epochs, 24 updates"

# ----------------------------------------------------------------------------------------- campaigns

check small_campaign camp fullset point
first=camp/runs/fullset/seed-0
run 0 train --out $first --resume --extend 2 -q
run 0 campaign status camp
out_has "4 done"
run 4 lock camp --data val.bjc
err_has "fullset seed 0 was extended by 2"
for dir in camp/runs/*/seed-*; do
    [ "$dir" = $first ] || run 0 train --out "$dir" --resume --extend 2 -q
done
run 0 lock camp --data val.bjc
run 0 lock run camp -q

finish
