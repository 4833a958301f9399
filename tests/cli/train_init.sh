# Tests bjepa train --init: loaded tensors, messages, campaigns, kill -9. tests/run/test_init.c tests the
# library.
. "$BJ_ROOT/tests/support/cli.sh"
unset BJEPA_ARM BJEPA_SEED BJEPA_RECIPE BJEPA_CONFIG BJEPA_SET BJEPA_DATA BJEPA_DEV BJEPA_OUT BJEPA_INIT
. "$BJ_ROOT/tests/support/in_memory.sh"

"$BJEPA" simulate --world 1 --cache t.bjc --scenes 120 --seed 3 --jobs 1 -q >/dev/null || exit 1
"$BJEPA" simulate --world 1 --cache u.bjc --scenes 120 --seed 4 --jobs 1 -q >/dev/null || exit 1
cat >tiny.yaml <<'END'
model: {embed: 8, heads: 2, token_hidden: 8, latent: 8, proj_hidden: 8, atom_hidden: 8,
        router_hidden: 8, decoder_hidden: 8, trunk: 8}
train: {batch: 32, epochs: 2, warmup: 1}
END
train="train --data u.bjc -c tiny.yaml -j 1"

is() { [ "$1" = "$2" ]; verdict $? "found '$1', expected '$2'"; }
weights() { (cd "$1" && sha256sum ckpt/*/*.safetensors); }
number() { # number KEY FILE: the first number of that key in a line of JSON
    tr ',{' '\n\n' <"$2" | sed -n "s/^\"$1\": *\([-0-9.e]*\).*/\1/p" | head -1 |
        awk '{ printf "%.17g\n", $1 }'
}

run 0 train --data t.bjc -c tiny.yaml -j 1 --arm fullset --out pre -q

# ------------------------------------------------------------------------------------ what is loaded

run 0 $train --arm fullset --init pre --out one
err_has "init: pre/ckpt/best/model.safetensors: loaded 52 of 52 tensors: encoder 20, branches 24, router 4, decoder 4; target encoder: of the checkpoint"
check grep -q '"init": "pre",' one/config.resolved.json
sum=$(sha256sum <pre/ckpt/best/model.safetensors | cut -d' ' -f1)
check grep -q "\"init_sha256\": \"$sum\"" one/config.resolved.json
check grep -q "\"sha256\": \"$sum\"" one/manifest.json

# Epoch 0 is the source on these scenes, digit by digit.
head -1 one/metrics.jsonl >epoch_0
run 0 eval pre --data u.bjc --part dev --json -j 1 -q
cp out evaluated
for key in traj_es latent_es brier top1_ade min_fde; do
    value=$(number $key evaluated)
    case $value in [1-9]* | 0.*) ;; *) false; verdict $? "$key of the source is '$value'" ;; esac
    is "$(number $key epoch_0)" "$value"
done

# --set init= is the same run, the settings that it keeps as well, and so is any number of threads.
weights one >one.sums
run 0 $train --arm fullset --set init=pre --out two -q
is "$(cat err)" "warning: 5 development scenes: the checkpoint choice is mostly noise; expected at least 32 scenes"
weights two >two.sums
check cmp one.sums two.sums
run 0 train --data u.bjc -c one/config.resolved.json --out three -q -j 3
weights three >three.sums
check cmp one.sums three.sums
BJEPA_INIT=pre run 0 $train --arm fullset --out four -q
weights four >four.sums
check cmp one.sums four.sums
run 0 config show --arm fullset --init pre
out_has "init"
out_has "--init"

run 0 $train --arm point --set model.atom_hidden=12 --init pre/ckpt/last/model.safetensors --out point
err_has "loaded 24 of 28 tensors: encoder 20, decoder 4; target encoder: copy of the online encoder"
err_has "init: part branches stays at its initialization (tensors: 4): atoms.0.0.weight: the checkpoint has shape [8, 8], expected [12, 8]"
err_has "init: part router of the checkpoint is not used (tensors: 4): the model has no such tensor"

# ------------------------------------------------------------------------------------------ messages

run 4 $train --arm fullset --init pre --out x --set model.latent=16
err_has "tensor 'encoder.proj.2.weight': the checkpoint has shape [8, 8], expected [16, 8]"
err_has "hint: use the sizes of the checkpoint with --set model.latent=8"
run 4 $train --arm fullset --init pre --out x --set model.atoms=4
err_has "tensor 'router.2.weight': the checkpoint has shape [6, 8], expected [4, 8]"
err_has "--set model.atoms=6, or load only the matching parts with --set init_parts=encoder,branches,decoder"
run 5 $train --arm fullset --init nowhere --out x
err_has "nowhere: cannot open"
run 2 $train --arm fullset --init pre --out x --set init_parts=encoder,rooter
err_has "init_parts is 'encoder,rooter', expected comma-separated names"
run 2 $train --arm fullset --out x --set init_parts=encoder
err_has "init_parts is 'encoder', but 'init' is not set"
run 2 $train --arm fullset --init pre --set init_sha256=12 --out x
err_has "init_sha256 is '12', expected 64 hexadecimal digits"
run 2 $train --arm anchor-b --init pre --set anchor=pre/ckpt/best --out x
err_has "init is 'pre', but arm anchor-b starts from 'anchor'"
check test ! -e x

# -------------------------------------------------------------------------------------- resume, kill

long="$train --arm fullset --init source --set train.epochs=24 -q"
cp -r pre source
run 0 $long --out ref
weights ref >ref.sums
seed=${BJ_KILL_SEED:-$(($(date +%s) % 30000))}
RANDOM=$seed
echo "BJ_KILL_SEED=$seed"
code=137
for i in $(seq 20); do
    "$BJEPA" $long --out killed --resume >out 2>err &
    pid=$!
    sleep "0.$((100 + RANDOM % 300))"
    kill -9 "$pid" 2>/dev/null
    code=0
    wait "$pid" 2>/dev/null || code=$?
    [ "$code" -eq 137 ] || break
    # The source is not needed once there is a checkpoint.
    [ ! -e killed/ckpt/last ] || rm -rf source
done
[ "$code" -eq 0 ] || [ "$code" -eq 137 ]
verdict $? "exit code $code after $i processes"
run 0 $long --out killed --resume
weights killed >killed.sums
check cmp ref.sums killed.sums
rm -rf source
run 4 $train --arm fullset --init pre --set train.epochs=24 --out killed --resume
err_has "init was 'source' and is now 'pre'"
# What is not given is taken from the run.
run 0 train --out killed --resume --json
out_has '"outcome":"done"'
run 2 train --out nothing --resume
err_has "nothing: contains no run to resume"

# ----------------------------------------------------------------------------------------- campaigns

mkdir grids
cp -r pre grids/pre
printf 'name: tune\narms: [fullset, mdn]\nseeds: 2\nset:\n init: pre\n' >grids/grid.yaml
sed 's/^/ /' tiny.yaml >>grids/grid.yaml
run 0 campaign grids/grid.yaml --data u.bjc --out camp --jobs 1 --threads 1 -q
check grep -q "\"init\": \"$(pwd -P)/grids/pre\"" camp/campaign.json
check grep -q "\"init_sha256\": \"$sum\"" camp/campaign.json
for dir in camp/runs/*/seed-*; do
    check grep -q "\"sha256\": \"$sum\"" "$dir/manifest.json"
done
# The path differs, so metadata do too; the numbers are those of the run above.
numbers() { sed 's/"wall_s":[^,]*,//; s/"scenes_per_s":[^,]*,//' "$1/metrics.jsonl"; }
numbers one >one.numbers
numbers camp/runs/fullset/seed-0 >camp.numbers
check cmp one.numbers camp.numbers
run 0 campaign grids/grid.yaml --data u.bjc --out camp --resume --jobs 1 -q
run 0 campaign grids/grid.yaml --data u.bjc --out other --set init=pre --jobs 1 --threads 1 -q
check grep -q "\"init\": \"$(pwd -P)/pre\"" other/campaign.json

# A source that changes is noticed by a campaign that is created again, and by the runs that are left.
rm -rf camp/runs/mdn/seed-1
cp two/ckpt/best/* grids/pre/ckpt/best/
run 4 campaign grids/grid.yaml --data u.bjc --out camp --resume --jobs 1 -q
err_has "was created with init_sha256 = $sum"
run 1 campaign --out camp --resume --jobs 1 -q
out_has "grids/pre/ckpt/best/model.safetensors: the SHA-256 is "
cp pre/ckpt/best/* grids/pre/ckpt/best/
run 0 campaign --out camp --resume --retry-failed --jobs 1 -q
"$BJEPA" simulate --world 1 --cache val.bjc --scenes 80 --seed 4 --split val -q >/dev/null
run 0 lock camp --data val.bjc

finish
