# Files of the wrong kind and options that are settings: messages name what was found and what to do.
. "$BJ_ROOT/tests/support/cli.sh"

mkdir folder
printf 'PAR1aaaaaaaaaaa' >x.parquet
printf 'PK\003\004aaaaaaaaaaa' >x.npz
check "$BJEPA" simulate --cache scenes.bjc --scenes 12 --seed 3 -q >/dev/null

for verb in "train --arm fullset --out new --data" "data info"; do
    run 5 $verb folder
    err_has "folder: is a folder, expected a cache (.bjc)"
    err_has "hint: for Argoverse 2 scenarios, use 'bjepa data prep --av2 DIR --out"
    run 3 $verb x.parquet
    err_has "x.parquet: is a Parquet file, expected a cache (.bjc)"
    err_has "bjepa data prep"
    run 3 $verb x.npz
    err_has "x.npz: is an npz archive, expected a cache (.bjc)"
    err_has "hint: only maze arms read npz archives"
    check test ! -e new
done
run 3 train --arm maze-branch --out new --data scenes.bjc
err_has "scenes.bjc: is a cache, expected an OGBench dataset (.npz)"
for verb in report table figures; do
    [ $verb = figures ] && set -- --out figs || set --
    run 3 $verb x.parquet "$@"
    err_has "x.parquet: found a Parquet file, expected a CSV file or a campaign folder"
done

# What everybody types first.
for pair in epochs=train.epochs lr=optim.lr batch=train.batch learning-rate=optim.lr \
    batch-size=train.batch optim.lr=optim.lr; do
    run 2 train --data scenes.bjc --arm fullset --out new "--${pair%%=*}" 3
    err_has "unknown option '--${pair%%=*}'; use --set ${pair#*=}=VALUE for this setting"
done
run 2 campaign --epochs=3
err_has "use --set train.epochs=VALUE"
run 2 predict --epochs 3 # takes no settings
check sh -c '! grep -q -- --set err'
run 2 train --data scenes.bjc --out new
err_has "'arm' is missing"
err_has "hint: use --arm with fullset, uniform, softwta,"
err_has "'bjepa config arms'"

finish
