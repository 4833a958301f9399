# Tests bjepa export and bjepa info MODEL: facts, 16-bit weights, failures, the model card.
. "$BJ_ROOT/tests/support/cli.sh"

run 0 simulate --cache train.bjc --scenes 60 --seed 3 --quiet --jobs 1
small="--set model.embed=8 --set model.heads=2 --set model.latent=8 --set model.token_hidden=8
    --set model.proj_hidden=8 --set model.atom_hidden=8 --set model.router_hidden=8
    --set model.decoder_hidden=8"
run 0 train --data train.bjc --arm fullset --seed 5 --out run --threads 1 --quiet \
    --set train.epochs=2 --set train.warmup=0 --set train.batch=32 $small
run 0 train --data world:7:128 --arm fullset --recipe fast --out fresh --threads 1 --quiet \
    --set train.epochs=2 --set train.batch=32 $small

# ---------------------------------------------------------------------------------------- facts

run 0 export run --bf16 --name small-v1 --license Apache-2.0 --out half.safetensors
err_has "wrote half.safetensors"
out_empty
run 0 info half.safetensors
fit=$(sed -n 's/.*"fit": \([0-9]*\).*/\1/p' run/manifest.json)
best=$(sed -n 's/.*"best_epoch": \([0-9]*\).*/\1/p' run/result.json)
out_has "name          small-v1"
out_has "arm           fullset"
out_has "recipe        paper"
out_has "seed          5"
out_has "data          cache $(sed -n 's/.*"digest": "\([0-9a-f]*\)".*/\1/p' run/manifest.json)"
out_has "scenes seen   $((fit * best))"
out_has "license       Apache-2.0"
out_has "SHA-256       $(sha256sum half.safetensors | cut -d' ' -f1)"
out_has "card          none next to the file"
run 0 export fresh --bf16 --out fresh.safetensors
run 0 info fresh.safetensors --json
out_has '"data":"world:2:7:train"'
out_has '"recipe":"fast"'
out_has '"card":null'
check grep -qE '"scenes":"(64|128)"' out
run 0 export fresh --scenes-before 1000 --out later.safetensors
run 0 info later.safetensors --json
check grep -qE '"scenes":"(1064|1128)"' out
echo card >CARD-fresh.md
run 0 info fresh.safetensors
out_has "card          CARD-fresh.md"

# -------------------------------------------------------------------------------------- weights

# The parts of a run and the file itself are the same model. 16 bits halve the file.
run 0 export run/ckpt/best --out full.safetensors
run 0 predict full.safetensors train.bjc --limit 3 --threads 1
cp out expected
run 0 predict run train.bjc --limit 3 --threads 1
check cmp out expected
run 0 predict half.safetensors train.bjc --limit 3 --threads 1
check test "$(wc -l <out)" -eq "$(wc -l <expected)"
check sh -c '! cmp -s out expected'
parameters=$(sed -n 's/.*"total": \([0-9]*\).*/\1/p' run/manifest.json)
size=$(stat -c %s half.safetensors)
check test "$size" -gt $((2 * parameters))
check test "$size" -lt $((2 * parameters + 10000))

# ------------------------------------------------------------------------------------- failures

cp -r run unfinished
rm unfinished/result.json
run 4 export unfinished --out x.safetensors
err_has "unfinished: the run is not finished"
err_has "hint:"
check test ! -e x.safetensors
run 0 export unfinished/ckpt/best --out x.safetensors
run 2 export run
err_has "--out FILE is missing"
run 5 export nowhere --out x.safetensors
run 3 export train.bjc --out y.safetensors
check test ! -e y.safetensors
mkdir folder
run 5 export run --out folder
run 2 info full.safetensors --arch paper
err_has "found both --arch and a model file, expected only one of them"

# ------------------------------------------------------------------------------------ model card

if command -v python3 >/dev/null; then
    MODELS=models SCENES=40 "$BJ_ROOT/scripts/make_builtin.sh" fresh "more scenes=train.bjc" >out 2>err
    verdict $? "make_builtin.sh failed"
    card=models/CARD-branchjepa-world2-v1.md
    model=models/branchjepa-world2-v1.safetensors
    check grep -qF "$(sha256sum $model | cut -d' ' -f1)" $card
    check grep -qF -- "--data world:7:128 --arm fullset --recipe fast --seed 0 --set model.atom_hidden=8" $card
    check grep -qF -- "--set train.epochs=2 --out run" $card
    check grep -qE '^\| trajectory Energy Score \| [0-9]+\.[0-9]{3} \|$' $card
    check grep -qE '^\| discrepancy \| [0-9.]+ \| [0-9.]+ \| [0-9.]+ \|$' $card
    check grep -qE '^\| focal track \| [+-][0-9.]+ \| [+-][0-9]+ % \|$' $card
    check grep -qE '^\| more scenes \| 60 \| [0-9.]+ \|' $card
    check grep -qF "What it must not be used for" $card
    check sh -c "! grep -qE 'n/a|None|$PWD' $card"
    BJEPA_BUILTIN=$model run 0 info builtin
    out_has "card          $card"
    out_has "license       Apache-2.0"
    "$BJ_ROOT/scripts/make_builtin.sh" fresh nonsense >out 2>err
    check test $? -eq 2
    err_has "found 'nonsense', expected NAME=CACHE"
else
    echo "skipped: the model card; it needs python3"
fi

finish
