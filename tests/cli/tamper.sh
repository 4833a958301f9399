# Tests that every reader rejects a forged campaign, and that a missing file removes the badge.
. "$BJ_ROOT/tests/support/cli.sh"
. "$BJ_ROOT/tests/support/small_campaign.sh"
command -v python3 >/dev/null || exit 77

check small_campaign camp fullset point
check "$BJEPA" lock camp --data val.bjc -q >/dev/null
check "$BJEPA" lock run camp -q >/dev/null
check python3 "$BJ_ROOT/tests/support/forge.py" "$BJEPA" camp val.bjc

# ------------------------------------------------------------------------------- missing files

page() { # page FOLDER: prints the badge
    "$BJEPA" report "$1" --out page.html --count 1 -j 1 >/dev/null 2>err || echo failed
    grep -o 'class="tag [^<]*' page.html
}
check test "$(page camp)" = 'class="tag locked">locked evaluation, 80 held-out scenes'
for file in lock.json locked/completion.json locked/run_summary.json locked/seed_table.json; do
    rm -rf gap
    cp -r camp gap
    rm gap/$file
    check test "$(page gap)" = \
        'class="tag dev">development scenes, 20 scenes, not the locked evaluation'
    err_has "gap/$file"
    run 4 table gap
    run 4 compare gap -a fullset -b point
    run 4 lock verify gap
    run 4 lock verify gap --partial
done
for file in runs/point/seed-1/ckpt/best/state.safetensors runs/fullset/seed-0/manifest.json; do
    rm -rf gap
    cp -r camp gap
    rm gap/$file
    check test "$(page gap)" = \
        'class="tag dev">evaluation, 80 held-out scenes, not verified: locked files are missing'
    err_has "gap/$file"
    run 0 table gap --json
    out_has '"verified": false'
    err_has "the evaluation is only partly verified, because 1 of 27 locked files are missing"
    run 4 lock verify gap
    err_has "gap/$file"
done
run 0 table camp --json
out_has '"verified": true'
err_empty

# ------------------------------------------------------------------- only the JSON files are known

mkdir received
cp -r camp/campaign.json camp/lock.json camp/locked received
mv val.bjc elsewhere.bjc
run 0 lock verify received --partial -q
out_has "received: the files that exist are consistent and unchanged since the lock: 4 checkpoints"
out_has "not checked: 25 of 27 locked files, which are missing"
out_has "not checked: whether the checkpoints give these numbers, and who published them"
run 0 lock verify received --partial --json -q
out_has '"files": 27, "missing": 25, "same_program": true, "repeated": false, "signer": null'
run 4 lock verify received -q
err_has "is missing"
run 4 lock verify received --repeat -q
run 2 lock verify received --partial --repeat
sed -i 's/"seed": 1/"seed": 2/' received/locked/seed_table.json
run 4 lock verify received --partial -q
err_has "received/locked/seed_table.json: the file was changed"
mv elsewhere.bjc val.bjc

# ------------------------------------------------------------------------ an older evaluation

if "$BJEPA" version | grep -qF '(float)'; then # the number type of the older evaluation
    old=$BJ_ROOT/tests/golden/locked_v1
    run 0 lock verify "$old" --partial -q
    out_has "the files that exist are consistent"
    out_has "not checked: the evaluator, which was another program file of version 0.1.0"
    run 0 table "$old" -m traj_es
    out_has "point  2"
    run 0 report "$old" --out page.html
    cp -r "$old" aged
    sed -i 's/"scenes": 40/"scenes": 41/' aged/locked/completion.json
    run 4 lock verify aged --partial -q
fi

# ------------------------------------------------------------------------------- repeated pass

find camp -type f -exec sha256sum {} + | sort >before
run 0 lock verify camp --repeat -q
out_has "repeated: a second evaluation gives the same bytes"
find camp -type f -exec sha256sum {} + | sort >after
check cmp before after

finish
