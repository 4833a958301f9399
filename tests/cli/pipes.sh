# Tests that named pipes and devices in the place of files are rejected at once.
. "$BJ_ROOT/tests/support/cli.sh"

# quick CODES ARGUMENT...: bjepa must end within 20 seconds and 1 GB of memory with one of the codes.
quick() {
    local want=$1 code=0
    shift
    last=$*
    (
        [ -n "${BJ_SANITIZE:-}" ] || ulimit -v 1000000
        timeout -s KILL 20 "$BJEPA" "$@"
    ) >out 2>err || code=$?
    case $want in
    *$code*) verdict 0 ;;
    *) verdict 1 "exit code $code, expected $want" ;;
    esac
}

"$BJEPA" simulate --out data/train --scenes 2 --seed 5 -j 1 -q >/dev/null
scenes=(data/train/*/)
folder=${scenes[0]%/}
id=$(basename "$folder")
check "$TEST_AUDIT" model model.safetensors 1 6
quick 0 data prep --av2 data --out whole.bjc -j 1 -q

for file in "scenario_$id.parquet" "log_map_archive_$id.json"; do
    mv "$folder/$file" kept
    mkfifo "$folder/$file"
    quick 3 data prep --av2 data --out pipe.bjc -j 1 -q --force
    check grep -q '"code":"unreadable".*not a regular file' pipe.bjc.rejects.jsonl
    out_has "pipe.bjc: 1 scenes"
    quick 3,5 predict model.safetensors "$folder" -j 1
    err_has "not a regular file"
    quick 3 view model.safetensors --av2 data/train --out view.html
    err_has "not a regular file"
    rm "$folder/$file"
    mv kept "$folder/$file"
done

mkfifo pipe
for file in pipe /dev/zero; do
    quick 3 train --data whole.bjc --arm fullset --out run --config $file
    quick 3 campaign $file --out camp
    quick 5 eval $file --data whole.bjc
    quick 5 train --data $file --arm fullset --out run
    quick 5 score $file --av2 whole.bjc
    quick 3 maze show $file --out maze.svg
done

# A pipe of the shell is what the user asked for.
quick 2 train --data whole.bjc --arm fullset --out run --config <(echo "nothing: 1")
err_has "nothing"
finish
