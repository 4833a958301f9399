# Tests bjepa train --data world:SEED:SCENES, which trains on scenes of the simulator: usage errors,
# development scenes, the number of threads, kill -9, and campaigns up to a locked evaluation.
. "$BJ_ROOT/tests/support/cli.sh"
. "$BJ_ROOT/tests/support/in_memory.sh"
unset BJEPA_ARM BJEPA_SEED BJEPA_RECIPE BJEPA_CONFIG BJEPA_SET BJEPA_DATA BJEPA_DEV BJEPA_OUT
world=world
options="--arm fullset -q"
for value in model.embed=8 model.heads=2 model.token_hidden=8 model.latent=8 model.proj_hidden=8 \
    model.atom_hidden=8 model.router_hidden=8 model.decoder_hidden=8 model.trunk=8 train.batch=16 \
    train.warmup=1 train.epochs=3; do
    options="$options --set $value"
done
weights() { (cd "$1" && sha256sum ckpt/*/*.safetensors); }
same() { # same RUN REFERENCE
    weights "$1" >"$1.sums"
    weights "$2" >"$2.sums"
    check cmp "$2.sums" "$1.sums"
    check test "$(wc -l <"$1.sums")" -eq 4
}

# ----------------------------------------------------------------------------------------- errors

run 2 train --data $world:x $options --out no
err_has "$world:x: the seed is not a number"
err_has "hint: write world:SEED or world:SEED:SCENES"
run 2 train --data $world:7:many $options --out no
err_has "the number of scenes is not a number from 1 to"
run 2 train --data world9:7:64 $options --out no
err_has "the world version is 9"
run 2 train --data $world:900001:64 $options --out no
err_has "seed 900001 is reserved for development scenes"
run 2 train --data $world:7 $options --out no
err_has "because neither a number of scenes nor train.updates is given"
err_has "hint: write $world:7:SCENES, or add --set train.updates=N"
run 2 train --data $world:7:47 $options --out no
err_has "found 47 scenes, expected at least 48, which is one update of 16 scenes in each of 3 epochs"
run 2 train --data $world:7:96 $options --set train.updates=3 --out no
err_has "found 96 scenes, expected 144"
check test ! -e no/manifest.json

# -------------------------------------------------------------------------------------- reference

# 4,800 scenes: three windows, so that batches of several windows and a reused slot are covered.
run 0 train --data $world:7:4800 $options -j 1 --out one
out_has "3 epochs, 300 updates over 4800 scenes"
out_has "(scenes: 1000)"
check grep -q "\"path\": \"$world:7:4800\"" one/manifest.json
check grep -q "\"source\": \"world:2:7:train\"" one/manifest.json
for threads in 2 3; do
    run 0 train --data $world:7:4800 $options -j $threads --out threads$threads
    same threads$threads one
done

# Version 1 has other scenes.
run 0 train --data world1:7:4800 $options -j 2 --out older
check grep -q '"source": "world:1:7:train"' older/manifest.json
weights older >older.sums
! cmp -s older.sums one.sums
verdict $? "version 1 gives other weights"
run 4 train --data world1:7:4800 $options --out one --resume
err_has "this run was started with different data"

# Other scenes give other weights, and another world cannot continue the run.
run 0 train --data $world:8:4800 $options -j 2 --out other
weights other >other.sums
! cmp -s other.sums one.sums
verdict $? "another seed gives other weights"
run 4 train --data $world:8:4800 $options --out one --resume
err_has "this run was started with different data"
run 4 train --data $world:7:4848 $options --out one --resume
err_has "this run was started with different data"
run 0 train --data $world:7:4800 $options --out one --resume

# Development scenes are those that simulate writes for the reserved seed.
"$BJEPA" simulate --cache dev.bjc --scenes 1000 --seed 900001 --split dev -q >/dev/null
run 0 train --data $world:7:4800 --dev dev.bjc $options -j 2 --out dev
scores() { grep -o '"traj_es":[^,]*' "$1/metrics.jsonl"; }
scores one >one.scores
scores dev >dev.scores
check cmp one.scores dev.scores
check test "$(wc -l <one.scores)" -eq 4
split() { grep -o '"dev_sha256": "[^"]*"' "$1/manifest.json"; }
check test "$(split one)" = "$(split dev)"

# ------------------------------------------------------------------------------------------- kill

seed=${BJ_KILL_SEED:-$(($(date +%s) % 30000))}
RANDOM=$seed
echo "BJ_KILL_SEED=$seed"
killed=0
for attempt in 1 2 3 4 5; do
    "$BJEPA" train --data $world:7:4800 $options -j $((1 + attempt % 3)) --set train.save_minutes=0 \
        --out killed --resume >out 2>err &
    pid=$!
    sleep "0.$(printf %03d $((300 + RANDOM % 600)))"
    kill -9 "$pid" 2>/dev/null
    code=0
    wait "$pid" 2>/dev/null || code=$?
    [ "$code" -ne 137 ] || killed=$((killed + 1))
done
run 0 train --data $world:7:4800 $options -j 2 --set train.save_minutes=0 --out killed --resume
run 0 train --data $world:7:4800 $options -j 2 --set train.save_minutes=0 --out whole
same killed whole
scores killed >killed.scores
check cmp killed.scores one.scores
[ "$killed" -ge 1 ]
verdict $? "$killed processes were killed"

# --------------------------------------------------------------------------------------- campaign

mkdir grids
cat >grids/grid.yaml <<END_YAML
name: fresh
data: $world:7:192
arms: [fullset, point]
seeds: [0]
set:
  train: {batch: 16, epochs: 2, warmup: 1}
  model: {embed: 8, heads: 2, token_hidden: 8, latent: 8, proj_hidden: 8, atom_hidden: 8,
          router_hidden: 8, decoder_hidden: 8}
END_YAML
run 0 campaign grids/grid.yaml --out camp --jobs 1 --threads 2 -q
check grep -q "\"path\": \"$world:7:192\"" camp/campaign.json
run 0 campaign --out camp --resume --jobs 1 -q
run 4 campaign grids/grid.yaml --data $world:8:192 --out camp --resume -q
err_has "was created with data that has the digest"
run 2 campaign grids/grid.yaml --data $world:x --out no -q
err_has "the seed is not a number"
"$BJEPA" simulate --cache seen.bjc --scenes 80 --seed 7 -q >/dev/null
"$BJEPA" simulate --cache val.bjc --scenes 80 --seed 7 --split val -q >/dev/null
run 4 lock camp --data seen.bjc -q
err_has "is a training or development scene of $world:7:192"
run 4 lock camp --data dev.bjc -q
err_has "is a training or development scene of $world:7:192"
run 0 lock camp --data val.bjc -q
run 0 lock run camp -q
check test -s camp/locked/completion.json
finish
