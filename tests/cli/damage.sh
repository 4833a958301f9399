# Tests that every verb that reads a cache notices a damaged scene, names it and exits with code 3.
. "$BJ_ROOT/tests/support/cli.sh"

small="--set train.batch=16 --set train.epochs=2 --set train.warmup=1 --set model.embed=8 \
--set model.heads=2 --set model.token_hidden=8 --set model.latent=8 --set model.proj_hidden=8 \
--set model.atom_hidden=8 --set model.router_hidden=8 --set model.decoder_hidden=8"

# flip FILE OFFSET: changes one bit of a byte.
flip() {
    local byte
    byte=$(od -An -tu1 -j "$2" -N 1 "$1")
    printf "\\$(printf %03o $((byte ^ 4)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

check "$BJEPA" simulate --cache good.bjc --scenes 40 --seed 3 -q >/dev/null
run 0 train --data good.bjc --arm fullset --out run $small -q
run 0 train --data good.bjc --arm point --out point $small -q
run 0 submit run good.bjc --out good.parquet

# Records start at byte 65536. The focal track of a scene comes first and has 1,400 bytes.
run 0 data split good.bjc --list
first=$(head -1 out | cut -d' ' -f1)
cp good.bjc bad.bjc
flip bad.bjc $((65536 + 1400 - 1)) # the last byte of the focal track of the first scene
named="scene '$first' (number 0): its features or future are damaged"

for verb in "train --data bad.bjc --arm fullset --out fresh $small" \
    "train --data good.bjc --dev bad.bjc --arm fullset --out fresh-dev $small" \
    "eval run --data bad.bjc" "predict run bad.bjc --json --out p.jsonl" \
    "submit run bad.bjc --out bad.parquet" "score good.parquet --av2 bad.bjc" \
    "audit run --data bad.bjc" "truth run bad.bjc good.bjc.law.safetensors" \
    "gallery lock --branch run --point point --data bad.bjc --out gal" \
    "baseline constant-velocity --data bad.bjc --out b.parquet" \
    "view run --av2 bad.bjc --count 40 --out view.html"; do # leaves the scene out
    run 3 $verb
    err_has "$named"
done
for file in p.jsonl bad.parquet gal b.parquet; do check test ! -e $file; done

# A run that met damage continues when the cache is whole again.
cp good.bjc bad.bjc
run 0 train --data bad.bjc --arm fullset --out fresh $small --resume -q
check cmp run/ckpt/best/model.safetensors fresh/ckpt/best/model.safetensors

# Damage that nothing reads is not searched for.
flip bad.bjc $((65536 + 1400 - 1))
run 0 data info bad.bjc
run 4 data verify bad.bjc
finish
