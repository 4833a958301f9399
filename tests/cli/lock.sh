# Tests bjepa lock: the locked files, the rejected campaigns and their exit codes.
. "$BJ_ROOT/tests/support/cli.sh"
. "$BJ_ROOT/tests/support/small_campaign.sh"

check small_campaign camp fullset point

# -------------------------------------------------------------------------------------- refusals

run 2 lock camp
err_has "--data CACHE is missing"
run 2 lock --data val.bjc
run 5 lock none --data val.bjc
run 5 lock camp --data none.bjc
run 4 lock camp --data train.bjc
err_has "is the campaign's training data"
out_empty
run 4 lock camp --data dev.bjc
err_has "is the campaign's development data"
check test ! -e camp/lock.json

mv camp/runs/point/seed-1/result.json kept
run 4 lock camp --data val.bjc
err_has "1 of 4 runs are not done: point seed 1"
mv kept camp/runs/point/seed-1/result.json

# A byte of a checkpoint that result.json does not vouch for.
model=camp/runs/fullset/seed-0/ckpt/best/model.safetensors
cp $model kept
printf 'x' | dd of=$model bs=1 seek=$(($(wc -c <$model) - 5)) conv=notrunc 2>/dev/null
run 4 lock camp --data val.bjc
err_has "fullset, seed 0: ckpt/best/model.safetensors: its SHA-256 is"
cp kept $model
# The checkpoint of the last epoch is not the chosen one when an earlier one was better.
cp camp/runs/point/seed-0/metrics.jsonl kept
sed -i '/"epoch":1,/s/"traj_es":/"traj_es":-/' camp/runs/point/seed-0/metrics.jsonl
cmp -s kept camp/runs/point/seed-0/metrics.jsonl && verdict 1 "the edit of metrics.jsonl did nothing"
run 4 lock camp --data val.bjc
err_has "point, seed 0: its checkpoint is from epoch 2, but the development rule chooses epoch 1"
cp kept camp/runs/point/seed-0/metrics.jsonl
check test ! -e camp/lock.json

# --------------------------------------------------------------------------------------- success

find camp -type f | sort >before
run 0 lock camp --data val.bjc -q
err_empty
out_has "camp: locked 4 runs (arms: 2, seeds: 2) and 80 held-out scenes"
out_has "next: bjepa lock run camp"
check grep -qx "$(sha256sum camp/lock.json | cut -d' ' -f1) lock.json" out
find camp -type f | sort >after
check test "$(comm -13 before after)" = "camp/lock.json"
check test -z "$(comm -23 before after)"
check grep -q "\"path\": \"$PWD/val.bjc\"" camp/lock.json
check grep -q "$(sha256sum val.bjc | cut -d' ' -f1)" camp/lock.json
check grep -q "$(sha256sum "$BJEPA" | cut -d' ' -f1)" camp/lock.json
check grep -q "$(sha256sum $model | cut -d' ' -f1)" camp/lock.json
check test "$(grep -c '"dir": "runs/' camp/lock.json)" -eq 4

run 4 lock camp --data val.bjc
err_has "camp/lock.json: the campaign is already locked"

# A moved campaign is locked just the same; the bytes are stable.
cp -r camp other
rm other/lock.json
run 0 lock other/ --data ./val.bjc --json -q
out_has '"runs": 4, "arms": 2, "seeds": 2, "scenes": 80, "digest": "'
check cmp camp/lock.json other/lock.json

# A folder that cannot be written to.
if [ "$(id -u)" -ne 0 ]; then
    rm other/lock.json
    chmod 555 other
    run 5 lock other --data val.bjc -q
    chmod 755 other
fi

finish
