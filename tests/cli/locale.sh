# Tests that files do not depend on the locale of the program that uses the library: the same commands
# write the same bytes in a process with decimal commas, and each can read what the other has written.
. "$BJ_ROOT/tests/support/cli.sh"
[ -z "${BJ_SANITIZE:-}" ] || { echo "skipped: a sanitizer build"; exit 77; }
mkdir locales
localedef -i de_DE -f UTF-8 ./locales/de_DE.UTF-8 >/dev/null 2>&1 ||
    { echo "skipped: the locale de_DE cannot be generated"; exit 77; }
"${CC:-cc}" -shared -fPIC -o setlocale.so "$BJ_ROOT/tests/faults/setlocale.c" || exit 1
german="env LOCPATH=$PWD/locales LC_ALL=de_DE.UTF-8 LD_PRELOAD=$PWD/setlocale.so"
check test "$($german printf %.1f 1,5)" = 1,5 # the locale is in use

options="--arm fullset -j 1 -q --set train.batch=1 --set train.warmup=1"
for value in embed=8 heads=2 token_hidden=8 latent=8 proj_hidden=8 atom_hidden=8 router_hidden=8 \
    decoder_hidden=8; do
    options="$options --set model.$value"
done

sums='"run.sums":"[^"]*0x1\.[0-9a-f]'
for dir in plain comma; do
    mkdir $dir
    command="$BJEPA"
    [ $dir = plain ] || command="$german $BJEPA"
    $command simulate --cache $dir/s.bjc --scenes 30 --seed 5 -j 1 -q >/dev/null
    $command train --data $dir/s.bjc --out $dir/run $options --set train.epochs=2 >/dev/null
    # Stop a run within an epoch. Repeat if the signal arrives at the end of one, where sums are 0.
    for _ in $(seq 5); do
        $command train --data $dir/s.bjc --out $dir/long $options --set train.epochs=10000 --resume \
            >/dev/null 2>&1 &
        pid=$!
        for _ in $(seq 200); do
            [ -s $dir/long/metrics.jsonl ] && break
            sleep 0.05
        done
        sleep 0.1
        kill -TERM $pid
        wait $pid
        grep -rqaE "$sums" $dir/long/ckpt && break
    done
done
check cmp plain/s.bjc comma/s.bjc
check cmp plain/s.bjc.law.safetensors comma/s.bjc.law.safetensors
check grep -aq '"jitter":"0.0040000000000000001"' plain/s.bjc.law.safetensors
for file in ckpt/best/model.safetensors ckpt/last/model.safetensors ckpt/last/state.safetensors \
    config.resolved.json; do
    check cmp plain/run/$file comma/run/$file
done
check sh -c '! grep -raoE "\"run.sums\":\"[^\"]*,[^\"]*\"" comma'
check grep -rqaE "$sums" comma/long/ckpt

# Each kind of process resumes the run of the other.
$german "$BJEPA" world show plain/s.bjc --scene '#2' >out 2>err
verdict $? "world show with commas"
run 0 world show comma/s.bjc --scene '#2'
for dir in plain comma; do
    command="timeout -s TERM 3 $BJEPA"
    [ $dir = comma ] || command="$german $command"
    $command train --data $dir/s.bjc --out $dir/long $options --set train.epochs=10000 --resume \
        >out 2>err
    code=$?
    last="train --resume of $dir/long"
    [ $code -eq 124 ] || [ $code -eq 143 ]
    verdict $? "exit code $code"
done
finish
