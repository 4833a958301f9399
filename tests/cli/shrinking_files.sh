# Tests that a mapped file which becomes shorter ends the command with a message that names the file.
. "$BJ_ROOT/tests/support/cli.sh"
. "$BJ_ROOT/tests/support/in_memory.sh"
. "$BJ_ROOT/tests/support/faults.sh"
[ -n "$faults" ] || { echo "skipped: a sanitizer build"; exit 77; }

check "$BJEPA" simulate --cache whole.bjc --scenes 20 --seed 5 --jobs 1 -q >/dev/null
small="--set model.embed=8 --set model.heads=2 --set model.token_hidden=8 --set model.latent=8
    --set model.proj_hidden=8 --set model.atom_hidden=8 --set model.router_hidden=8
    --set model.decoder_hidden=8 --set train.batch=8 --set train.epochs=1 --set train.warmup=1"
run 0 train --data whole.bjc --arm point --out run -q -j 1 $small

# The header is read first. The cache is cut when the descriptor that mapped it is closed.
fault_path=/cut.bjc
for arguments in "eval run --data cut.bjc -q -j 1" "data verify cut.bjc" \
    "train --data cut.bjc --arm point --out again -q -j 1 $small" \
    "submit run/ckpt/best cut.bjc --out sub.parquet --threads 1"; do
    cp whole.bjc cut.bjc
    fault CUT close 2 $arguments
    [ "$code" -eq 5 ]
    verdict $? "exit code $code"
    err_has "cut.bjc: cannot read: the file became shorter"
    [ ! -e sub.parquet ] && [ -z "$(find . -name '.sub*')" ]
    verdict $? "an output was left behind"
done
finish
