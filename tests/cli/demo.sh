# bjepa demo: every step, its files, going on after an interruption, errors.
. "$BJ_ROOT/tests/support/cli.sh"

demo() { # demo CODE FOLDER: the smallest one
    run "$1" demo --out "$2" --scenes 90 --held-out 24 --epochs 1 --threads 2
}

# ------------------------------------------------------------------------------------ interrupted

set -m # else background commands ignore SIGINT
"$BJEPA" demo --out one --scenes 90 --held-out 24 --epochs 1 --threads 2 >out 2>err &
for _ in $(seq 600); do
    [ -e one/campaign/runs/fullset/seed-0/status.json ] && break
    sleep 0.1
done
kill -INT $!
code=0
wait $! || code=$?
set +m
check test "$code" -eq 130
err_has "bjepa demo: interrupted; the same command goes on from here"
check test ! -e one/campaign/lock.json

# ----------------------------------------------------------------------------------- going on

demo 0 one
err_has "$ bjepa campaign --out one/campaign --resume"
out_has "24 simulated scenes no model has seen, evaluated once, behind a lock:"
out_has "trajectory Energy Score (lower is better): full-set"
out_has "one/report.html"
for file in train.bjc val.bjc demo.yaml campaign/campaign.json campaign/lock.json \
    campaign/locked/completion.json campaign/audit.json campaign/truth.json \
    gallery/manifest.json report.html; do
    check test -s one/"$file"
done
run 0 evaluate one/campaign --verify

# Nothing is left to do.
demo 0 one
cp out summary
check test "$(grep -c '^\$ bjepa' err)" -eq 0
check grep -qF "trajectory Energy Score" out

# -------------------------------------------------------------------------------- deterministic

demo 0 two
check test "$(grep -c '^\$ bjepa' err)" -ge 9
sed 's|one/|two/|' summary >expected
tail -n "$(wc -l <expected)" out >found
check cmp found expected
check cmp one/campaign/runs/fullset/seed-0/ckpt/best/model.safetensors \
    two/campaign/runs/fullset/seed-0/ckpt/best/model.safetensors
for demo in one two; do # what is bound differs by times; values do not
    run 0 table "$demo/campaign" --per-seed --format csv
    cp out "$demo.csv"
done
check cmp one.csv two.csv

# --------------------------------------------------------------------------------------- errors

run 2 demo --scenes 1
err_has "--scenes: found '1', expected an integer from 60"
run 2 demo extra
err_has "unexpected argument 'extra'"
echo mine >file
run 5 demo --out file
err_has "file: is a file, expected a folder"
check grep -qx mine file
# A step that fails is the end, with its exit code and its message.
mkdir broken
echo nonsense >broken/train.bjc
run 3 demo --out broken --scenes 90 --held-out 24 --epochs 1
err_has "broken/train.bjc"
check test ! -e broken/report.html

finish
