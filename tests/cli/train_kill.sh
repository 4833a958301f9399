# Tests that bjepa train survives kill -9. Processes are killed at random moments, and the resumed run ends
# with the bytes of an uninterrupted run.
#
# The moments depend on BJ_KILL_SEED, which is printed and can be set to repeat a failure. They also depend
# on the speed of the machine.
. "$BJ_ROOT/tests/support/cli.sh"
. "$BJ_ROOT/tests/support/in_memory.sh"
unset BJEPA_ARM BJEPA_SEED BJEPA_RECIPE BJEPA_CONFIG BJEPA_SET BJEPA_DATA BJEPA_DEV BJEPA_OUT
seed=${BJ_KILL_SEED:-$(($(date +%s) % 30000))}
RANDOM=$seed
echo "BJ_KILL_SEED=$seed"

"$BJEPA" simulate --world 1 --cache t.bjc --scenes 120 --seed 3 --jobs 1 -q >/dev/null || exit 1
model="model.embed=8 model.heads=2 model.token_hidden=8 model.latent=8 model.proj_hidden=8
    model.atom_hidden=8 model.router_hidden=8 model.decoder_hidden=8 model.trunk=8"
options="--data t.bjc -q"
for value in $model train.batch=16 train.warmup=1 train.epochs=12; do
    options="$options --set $value"
done

milliseconds() { echo $(($(date +%s%N) / 1000000)); }
weights() { (cd "$1" && sha256sum ckpt/*/*.safetensors); }
epochs() { sed 's/"wall_s":[^,]*,//; s/"scenes_per_s":[^,]*,//' "$1/metrics.jsonl"; }
same() { # same RUN REFERENCE
    weights "$1" >"$1.sums"
    weights "$2" >"$2.sums"
    check cmp "$2.sums" "$1.sums"
    [ "$(wc -l <"$1.sums")" -eq 4 ]
    verdict $? "$1: four files"
    epochs "$1" >"$1.epochs"
    epochs "$2" >"$2.epochs"
    check cmp "$2.epochs" "$1.epochs"
}

# kill_run NAME KILLS ARGUMENT...: a reference, then runs that are killed so many times altogether.
# A process lives for 2 to 40 % of the time that the whole run takes, or until it is done.
kill_run() {
    local name=$1 kills=$2 killed=0 runs=0 pid whole start moment code dir
    shift 2
    last="train $* $options --out $name"
    start=$(milliseconds)
    "$BJEPA" train "$@" $options --out "$name" >out 2>err
    verdict $? "the reference trains"
    whole=$(($(milliseconds) - start))
    while [ "$killed" -lt "$kills" ] && [ "$runs" -lt 40 ]; do
        runs=$((runs + 1))
        dir=$name.$runs
        code=137
        while [ "$code" -eq 137 ] && [ "$killed" -lt "$kills" ]; do
            "$BJEPA" train "$@" $options --out "$dir" --resume >out 2>err &
            pid=$!
            moment=$((whole * (20 + RANDOM % 380) / 1000))
            sleep "$((moment / 1000)).$(printf %03d $((moment % 1000)))"
            kill -9 "$pid" 2>/dev/null
            code=0
            wait "$pid" 2>/dev/null || code=$?
            [ "$code" -eq 0 ] || [ "$code" -eq 137 ]
            verdict $? "exit code $code after $killed kills"
            [ "$code" -ne 137 ] || killed=$((killed + 1))
        done
        "$BJEPA" train "$@" $options --out "$dir" --resume >out 2>err
        verdict $? "$dir continues to its end"
        same "$dir" "$name"
        [ -z "$(find "$dir" -name '.*.tmp' -path '*ckpt*')" ]
        verdict $? "$dir: nothing is left of what was killed while it was saved"
        rm -rf "$dir"
    done
    [ "$killed" -ge "$kills" ]
    verdict $? "$killed of $kills kills in $runs runs"
    echo "$name: $killed kills in $runs runs of $whole ms"
}

# Checkpoints after epochs only: an epoch begins anew.
kill_run epochs 8 --arm fullset --seed 1 -j 1
# After every update: half of the time goes into saving.
kill_run steps 10 --arm mdn-component --seed 2 -j 2 --set train.save_minutes=0
# In mixed precision.
kill_run mixed 4 --arm specialization --seed 3 -j 2 --set train.precision=mixed --set train.save_minutes=0
# Stage A, whose evaluation is another one, with gates that some epochs may not pass.
kill_run stage_a 4 --arm anchor-a -j 1 --set gate.ade=1e6 --set gate.fde=1e6 --set gate.std=0 \
    --set gate.low_std=1 --set gate.rank=0

finish
