# bjepa lock run and lock verify: one pass, three files, once; kills, changes, and nothing about single scenes.
. "$BJ_ROOT/tests/support/cli.sh"
. "$BJ_ROOT/tests/support/small_campaign.sh"

check small_campaign camp fullset uniform point

# ------------------------------------------------------------------------------ before the lock

run 4 lock run camp
err_has "camp/lock.json: the campaign is not locked"
run 4 lock verify camp
run 4 table camp
err_has "camp: the campaign has not been evaluated"
err_has "--dev shows the development split"
out_empty
run 0 table camp --dev -m traj_es
check test "$(head -1 out)" = "development split, not the locked evaluation"
check grep -qE '^uniform +2 +[0-9.]+ ± ' out
err_has "development split, not the locked evaluation"
run 0 table camp --dev --format latex -m traj_es
out_has "% development split, not the locked evaluation"
run 0 table camp --dev --format csv --per-seed -m traj_es
check test "$(wc -l <out)" -eq 7
run 0 table camp --dev --json -m traj_es
out_has '"split": "development split, not the locked evaluation"'
run 0 compare camp --dev -a fullset -b point -m traj_es
out_has "development split, not the locked evaluation"
run 2 table "$BJ_ROOT/data/paper/av2_seeds.csv" --dev
err_has "is not a campaign folder"

check "$BJEPA" lock camp --data val.bjc -q >/dev/null
run 0 lock verify camp
out_has "camp: all files are unchanged since the lock (6 checkpoints, 80 held-out scenes)"
out_has "not evaluated yet"

# -------------------------------------------------------------------------------- interruptions

# Portable kernels and one thread: slow enough to be hit. The hidden folder shows that it computes.
interrupt() { # interrupt SIGNAL: sets code
    BJ_ISA=c "$BJEPA" lock run camp --threads 1 -q >out 2>err &
    local process=$!
    while kill -0 $process 2>/dev/null && [ ! -d "camp/.locked.$process-0.tmp" ]; do :; done
    kill -"$1" $process 2>/dev/null
    code=0
    wait $process 2>/dev/null || code=$?
}
for try in 1 2 3 4 5; do
    interrupt KILL
    [ "$code" -eq 137 ] && break
    rm -rf camp/locked # it was faster
done
check test "$code" -eq 137
check test ! -e camp/locked
check test "$(ls -d camp/.locked.*.tmp | wc -l)" -eq 1
check test -z "$(ls -A camp/.locked.*.tmp)"
interrupt TERM
check test "$code" -eq 143
err_has "stopped; nothing was written"
check test ! -e camp/locked
check test -z "$(ls -d camp/.locked.*.tmp 2>/dev/null)" # the second removed what the first left

# ----------------------------------------------------------------------------------- any change

for file in campaign.json runs/point/seed-1/config.resolved.json runs/uniform/seed-0/metrics.jsonl \
    runs/fullset/seed-1/ckpt/best/state.safetensors; do
    cp camp/$file kept
    printf '\0' >>camp/$file
    run 4 lock run camp -q
    err_has "camp/$file"
    err_has "was changed"
    out_empty
    cp kept camp/$file
done
cp "$BJEPA" another
printf '\0' >>another
last="(another program) lock run camp"
code=0
./another lock run camp -q >out 2>err || code=$?
check test "$code" -eq 4
err_has "(evaluator): the file was changed"
cp val.bjc kept
printf '\0' >>val.bjc
run 4 lock run camp -q
err_has "val.bjc (held-out data): the file was changed"
cp kept val.bjc
check test ! -e camp/locked

# -------------------------------------------------------------------------------------- results

find . -type f ! -name out ! -name err | sort >before
run 0 lock run camp -q
err_empty
out_has "camp: 6 checkpoints, one pass over 80 held-out scenes"
check grep -qE '^fullset +2 +[0-9.]+±[0-9.]+' out
check grep -qx "$(sha256sum camp/locked/completion.json | cut -d' ' -f1) locked/completion.json" out
find . -type f ! -name out ! -name err ! -name before ! -name after | sort >after
check test "$(grep -vx ./before before | comm -13 - after | tr '\n' ' ')" = \
    "./camp/locked/completion.json ./camp/locked/run_summary.json ./camp/locked/seed_table.json "

for file in run_summary.json seed_table.json; do
    check grep -q "$(sha256sum camp/locked/$file | cut -d' ' -f1)" camp/locked/completion.json
done
check grep -q "$(sha256sum camp/lock.json | cut -d' ' -f1)" camp/locked/completion.json

run 4 lock run camp
err_has "camp/locked: the campaign was already evaluated"
run 0 lock verify camp --json -q
out_has '"checkpoints": 6, "scenes": 80, "evaluated": true, "digest": "'
cp camp/locked/run_summary.json kept
sed -i 's/"n": 2/"n": 3/' camp/locked/run_summary.json
run 4 lock verify camp
err_has "camp/locked/run_summary.json: the file was changed"
cp kept camp/locked/run_summary.json

# The old name works and names the new one.
run 0 evaluate camp --verify -q
err_has "notice: this verb is now 'bjepa lock verify'; 'evaluate' will be removed in version 0.3"
out_has "camp: all files are unchanged since the lock"
run 4 evaluate camp
err_has "notice: this verb is now 'bjepa lock run'"
run 0 help
out_lacks "evaluate  "

run 0 table camp -m traj_es,brier
err_empty
check grep -qE '^point +2 +' out
out_lacks "development"
run 0 compare camp -a fullset -b point
check grep -qE '^traj\. ES \(m\) ↓ ' out
sed -i '0,/"value": [0-9]/s//"value": 7/' camp/locked/seed_table.json
run 4 table camp
err_has "seed_table.json: the file was changed"

# ------------------------------------------------------------------------------- single scenes

# The options, all of them; the interface, which takes no place to put a scene's numbers.
run 0 lock run --help
check test "$(grep -oE -- '--[a-z]+ ' out | sort -u | tr -d '\n')" = "--help --json --quiet --threads "
run 0 lock verify --help
check test "$(grep -oE -- '^ .*--[a-z]+ ' out | grep -oE -- '--[a-z]+ ' | sort -u | tr -d '\n')" = \
    "--help --json --key --partial --quiet --repeat --threads "
sed -n '/ locked evaluation \*\//,/^#endif/p' "$BJ_ROOT/include/branchjepa/campaign.h" >interface
check test "$(grep -c BJ_API interface)" -ge 4
check test -z "$(grep -nE 'bj_scene|bj_real|bj_batch|double \*|float \*|trajector|FILE \*' interface)"
if command -v python3 >/dev/null; then
    check python3 - <<'END_PYTHON'
import json, re
summary = json.load(open("camp/locked/run_summary.json"))
text = "".join(open(f"camp/locked/{n}.json").read() for n in ("run_summary", "seed_table", "completion"))
assert not re.search(r"[0-9a-f]{8}-[0-9a-f]{4}-", text), "a scenario id"
assert summary["scenes"] == 80 and [a["arm"] for a in summary["arms"]] == ["fullset", "uniform", "point"]
for arm in summary["arms"]:
    assert arm["seeds"] == [0, 1] and abs(sum(arm["usage"]) - 1) < 1e-6
    kinds = {}
    for group in arm["groups"]:
        kinds.setdefault(group["by"], []).append(group)
    assert set(kinds) == {"maneuver", "type", "city", "speed"}
    for groups in kinds.values():
        assert sum(g["scenes"] for g in groups) == 80
        hidden = [g["scenes"] for g in groups if g["metrics"] is None]
        assert not hidden or sum(hidden) >= 10, hidden
        shown = [g for g in groups if g["metrics"] is not None]
        assert all(g["scenes"] >= 10 for g in shown)
        if not hidden: # groups add up to the whole
            whole = sum(g["scenes"] * g["metrics"]["traj_es"]["mean"] for g in shown) / 80
            assert abs(whole - arm["metrics"]["traj_es"]["mean"]) < 1e-9
    assert sum(b["count"] for b in arm["calibration"]) == 160
    assert all(b["hits"] is None or b["count"] >= 10 for b in arm["calibration"])
END_PYTHON
fi

finish
