# Tests the checkpoint name `builtin`: every verb that takes a model, where the file is found, and the
# message when it is missing.
. "$BJ_ROOT/tests/support/cli.sh"

name=branchjepa-world2-v1
run 0 simulate --cache val.bjc --scenes 40 --seed 2 --split val --quiet --jobs 1
run 0 train --data world:7:64 --arm fullset --out run --threads 1 --quiet \
    --set train.epochs=1 --set train.warmup=0 --set train.batch=32 --set model.embed=8 \
    --set model.heads=2 --set model.latent=8 --set model.token_hidden=8 --set model.proj_hidden=8 \
    --set model.atom_hidden=8 --set model.router_hidden=8 --set model.decoder_hidden=8
run 0 export run --bf16 --name $name --license Apache-2.0 --out $name.safetensors

# ---------------------------------------------------------------------------------------- verbs

export BJEPA_BUILTIN=$PWD/$name.safetensors
same() { # same ARGUMENT...: MODEL in the arguments may be the file or `builtin`
    run 0 "${@/MODEL/$name.safetensors}"
    sed "s|$name.safetensors|builtin|g; s|$PWD/builtin|builtin|g" out >expected
    run 0 "${@/MODEL/builtin}"
    sed "s|$BJEPA_BUILTIN|builtin|g" out >found
    check cmp found expected
}
same predict MODEL val.bjc --limit 5 --threads 1
same truth MODEL val.bjc val.bjc.law.safetensors --samples 16 --best-scenes 0 \
    --json --quiet --threads 1
same audit MODEL --data val.bjc --json --quiet --threads 1
same info MODEL --json
run 0 eval builtin --data val.bjc --json --quiet --threads 1
out_has "\"model\":\"$BJEPA_BUILTIN\""
run 0 submit builtin val.bjc --out builtin.parquet --threads 1
run 0 submit $name.safetensors val.bjc --out file.parquet --threads 1
check cmp builtin.parquet file.parquet
run 0 view builtin --av2 val.bjc --out view.html --count 4 --threads 1
check grep -qF "<title>Forecasts of $name</title>" view.html
run 0 export builtin --out again.safetensors
run 0 info builtin
out_has "name          $name"
out_has "SHA-256       $(sha256sum $name.safetensors | cut -d' ' -f1)"
out_has "scenes seen   64"

# Training from it: the setting is the path of the file.
tune="--arm fullset --threads 1 --set train.epochs=1 --set train.warmup=0 --set model.embed=8
    --set model.heads=2 --set model.latent=8 --set model.token_hidden=8 --set model.proj_hidden=8
    --set model.atom_hidden=8 --set model.router_hidden=8 --set model.decoder_hidden=8"
run 0 train --data val.bjc --init builtin --out tuned $tune
err_has "init: $BJEPA_BUILTIN: loaded 52 of 52 tensors"
check grep -qF "\"init\": \"$BJEPA_BUILTIN\"" tuned/config.resolved.json
printf 'name: tune\ndata: val.bjc\narms: [fullset]\nseeds: 1\n' >tune.yaml
run 0 campaign tune.yaml --out camp --dry-run --set init=builtin
run 5 campaign tune.yaml --out camp --dry-run --set init=./builtin
err_has "./builtin: cannot open"

# A folder of that name is not meant by it, but by ./builtin.
mkdir builtin
run 0 info builtin
run 5 info ./builtin
err_has "./builtin: no model.safetensors in it"
run 0 eval builtin --data val.bjc --quiet --threads 1
rmdir builtin

# --------------------------------------------------------------------------------------- places

program=$BJEPA
# place FOLDER FILE: a program in FOLDER finds the model in FILE, and only there
place() {
    mkdir -p "$1" "$(dirname "$2")"
    cp "$program" "$1/bjepa"
    BJEPA=$PWD/$1/bjepa
    run 5 info builtin
    err_has "builtin: the pretrained model $name.safetensors is not installed"
    err_has "hint: put the file into models/ of the source tree or share/branchjepa"
    run 5 predict builtin val.bjc
    err_has "bjepa predict: builtin: the pretrained model"
    cp $name.safetensors "$2"
    run 0 info builtin
    out_has "file          $PWD/$2"
    BJEPA=$program
}
unset BJEPA_BUILTIN
place prefix/bin prefix/share/branchjepa/$name.safetensors
place tree/build/release tree/models/$name.safetensors
# An installation comes before a source tree, and the variable before both.
mkdir -p tree/build/share/branchjepa
cp $name.safetensors tree/build/share/branchjepa/
BJEPA=$PWD/tree/build/release/bjepa
run 0 info builtin
out_has "file          $PWD/tree/build/share/branchjepa/$name.safetensors"
export BJEPA_BUILTIN=again.safetensors
run 0 info builtin
out_has "file          again.safetensors"
BJEPA_BUILTIN=nowhere
run 5 info builtin
err_has "BJEPA_BUILTIN: nowhere: cannot read the pretrained model"
err_has "hint: unset BJEPA_BUILTIN"

# A damaged file is not a model.
head -c 5000 again.safetensors >damaged.safetensors
BJEPA_BUILTIN=damaged.safetensors
run 3 info builtin
err_has "damaged.safetensors"

finish
