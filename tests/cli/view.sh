# Tests bjepa view: submissions in the scene browser, from a cache and from scenario files.
. "$BJ_ROOT/tests/support/cli.sh"

# payload FILE: the embedded scenes, one a line
payload() { sed -n '/id="scene-data"/,/<\/script>/p' "$1"; }
scenes() { payload "$1" | grep -c '^{"id":'; }
count_is() { # count_is FILE N
    local found
    found=$(scenes "$1")
    [ "$found" -eq "$2" ]
    verdict $? "$1 has $found scenes, expected $2"
}

run 0 simulate --cache val.bjc --scenes 30 --seed 2 --split val --quiet --jobs 1
run 0 simulate --out val --scenes 30 --seed 2 --split val --quiet --jobs 1
run 0 simulate --cache train.bjc --scenes 60 --seed 3 --quiet --jobs 1
run 0 train --data train.bjc --arm fullset --seed 0 --out run --threads 1 --quiet \
    --set train.epochs=1 --set train.warmup=0 --set train.batch=32 --set model.embed=8 \
    --set model.heads=2 \
    --set model.latent=8 --set model.token_hidden=8 --set model.proj_hidden=8 \
    --set model.atom_hidden=8 --set model.router_hidden=8 --set model.decoder_hidden=8
run 0 submit run/ckpt/best val.bjc --out 'a<b>.parquet' --threads 1

# One file, everything in it, nothing fetched.
run 0 view 'a<b>.parquet' --av2 val.bjc --out cache.html --count 8
err_has "wrote cache.html with 8 scenes"
out_empty
count_is cache.html 8
check grep -q '^<!DOCTYPE html>' cache.html
check sh -c '! grep -qE "(src|href)=\"?https?:|url\(http|@import" cache.html'
check grep -qF '<title>Forecasts of a&lt;b&gt;</title>' cache.html
check grep -qF '"title":"a\u003cb\u003e"' cache.html
check sh -c '! grep -qF "{{" cache.html'
check grep -qF '8 of 30 scenes, which were selected by a hash of their ids' cache.html

# The same scenes from raw files: the same payload, map and law included.
run 0 view 'a<b>.parquet' --av2 val --out folder.html --count 8
payload cache.html >from_cache
payload folder.html >from_folder
check cmp from_cache from_folder
check grep -q '"law":{"w":\[' from_cache
check grep -q '"area":\[\[' from_cache
check test "$(grep -c '"law":null' from_cache)" -eq 0

# Chosen by a hash: not the first ones, and fewer are a part of more.
ids() { payload "$1" | sed -n 's/^{"id":"\([^"]*\)".*/\1/p' | sort; }
run 0 view 'a<b>.parquet' --av2 val.bjc --out all.html --count 30
run 0 view 'a<b>.parquet' --av2 val.bjc --out few.html --count 4
ids all.html >all
ids cache.html >some
ids few.html >few
check test "$(wc -l <all)" -eq 30
check sh -c 'head -8 all | cmp -s - some; test $? -eq 1'
check test "$(comm -12 few some | wc -l)" -eq 4

# Named scenes; two submissions side by side; the same bytes again.
id=$(payload cache.html | sed -n 's/^{"id":"\([^"]*\)".*/\1/p' | head -1)
cp 'a<b>.parquet' other.parquet
run 0 view 'a<b>.parquet' other.parquet --av2 val.bjc --scene "$id" --out one.html
count_is one.html 1
check test "$(payload one.html | grep -o '"arm":' | wc -l)" -eq 2
check grep -qF 'The scenes were selected by id' one.html
run 0 view 'a<b>.parquet' other.parquet --av2 val.bjc --scene "$id" --out again.html
check cmp one.html again.html

# What a scene shows is what bjepa predict says, to the centimeter: first and last point of the
# first branch.
run 0 predict run/ckpt/best val.bjc --scene "$id" --json --threads 1
said=$(sed 's/.*"trajectories":\[\[\(.*\)\]\],"trajectories_city.*/\1/; s/\]\],\[\[.*//' out | tr -d '[]' |
    awk -F, '{printf "%.0f,%.0f %.0f,%.0f", 100 * $1, 100 * $2, 100 * $(NF - 1), 100 * $NF}')
shown=$(grep "^{\"id\":\"$id" one.html | sed 's/.*"forecast":\[{"w":[^}]*"p":\[\[\([^]]*\)\].*/\1/' |
    awk -F, '{for (i = 1; i <= NF; i += 2) {x += $i; y += $(i + 1)} print $1 "," $2 " " x "," y, NF}')
check test "$shown" = "$said 120"

# A model predicts what its submission has, to the centimeter; several kinds side by side.
run 0 view run/ckpt/best --av2 val.bjc --out model.html --count 8 --threads 1
check grep -qF '<title>Forecasts of run/ckpt/best</title>' model.html
forecasts() { payload "$1" | sed 's/.*"forecast":\[{"w":\[[0-9.,]*\],//' | grep '^"p"'; }
forecasts cache.html >from_file
forecasts model.html >from_model
check test "$(wc -l <from_model)" -eq 8
check cmp from_file from_model
run 0 view run 'a<b>.parquet' --av2 val.bjc --out both.html --count 8 --threads 2
check test "$(payload both.html | grep -o '"arm":' | wc -l)" -eq 2
run 0 view run/ckpt/best --av2 val --out model_folder.html --count 8 --threads 1
payload model.html >from_cache
payload model_folder.html >from_folder
check cmp from_cache from_folder

# Chosen by maneuvers: scenes with several ways to go come first, and no future is read. The same
# cache with other futures gives the same scenes and forecasts.
run 0 view run --av2 val.bjc --out ways.html --count 6 --choose maneuvers --threads 1
count_is ways.html 6
check grep -qF '6 of 30 scenes, which were selected without reading any future' ways.html
run 0 view run --av2 val.bjc --out ways2.html --count 6 --choose maneuvers --threads 2
check cmp ways.html ways2.html
run 0 view run --av2 val.bjc --out most.html --count 1000 --choose maneuvers --threads 1
count_is most.html 30
check "$TEST_AUDIT" zero val.bjc blind.bjc
cp val.bjc.law.safetensors blind.bjc.law.safetensors
run 0 view run --av2 blind.bjc --out blind.html --count 6 --choose maneuvers --threads 1
without_future() { payload "$1" | sed 's/,"future":.*//'; }
without_future ways.html >seeing
without_future blind.html >blind
check cmp seeing blind
check sh -c '! cmp -s ways.html blind.html'
run 2 view run --av2 val.bjc --choose maneuvers --scene "$id"
err_has "found both --choose maneuvers and --scene, expected only one of them"
run 3 view train.bjc.law.safetensors --av2 val.bjc

# Futures that are not known, laws that do not belong, rows that cannot be drawn.
run 3 view 'a<b>.parquet' --av2 val.bjc --law train.bjc.law.safetensors --out x.html
err_has "does not contain the true distribution of the scenes"
check test ! -e x.html
run 2 view 'a<b>.parquet' --av2 val.bjc --scene 000 --out x.html
err_has "no scenario '000' among 30"
run 3 view 'a<b>.parquet' --av2 train.bjc --out x.html
err_has "none of the 60 scenarios is in a<b>.parquet"
check "$TEST_SCORE" scenarios made
check "$TEST_SCORE" submission points.parquet points
run 3 view points.parquet --av2 made --out points.html
err_has "expected 60 points"
check grep -qF '"forecast":[null]' points.html
check grep -qF '"future":null' points.html
# Rows of other tracks are not those of the road user in question.
check "$TEST_SCORE" submission good.parquet good
check "$TEST_SCORE" submission track.parquet track
for name in good track; do
    run 0 view $name.parquet --av2 made --out $name.html
    payload $name.html | grep '^{"id":' >$name.scenes
done
check test "$(wc -l <good.scenes)" -eq 4
check cmp good.scenes track.scenes

# Misuse.
run 2 view 'a<b>.parquet'
err_has "--av2 DIR_OR_CACHE is missing"
run 2 view --av2 val.bjc
run 2 view 'a<b>.parquet' --av2 val.bjc --count 0
run 5 view none.parquet --av2 val.bjc
run 5 view 'a<b>.parquet' --av2 nowhere
run 3 view val.bjc --av2 val.bjc
mkdir folder
run 5 view 'a<b>.parquet' --av2 val.bjc --out folder
check test -z "$(ls -A | grep tmp)"

# Real scenarios, where they are.
if [ -n "${BJ_AV2_DATA:-}" ]; then
    run 0 predict run/ckpt/best "$BJ_AV2_DATA/av2" --parquet real.parquet --threads 1
    run 0 view real.parquet --av2 "$BJ_AV2_DATA/av2" --out real.html
    count_is real.html "$(ls -d "$BJ_AV2_DATA"/av2/*/ | wc -l)"
    check sh -c "grep -q '\"future\":null' real.html && grep -q '\"future\":{' real.html"
    check sh -c "! grep -q '\"law\":{' real.html"
else
    echo "skipped: real scenarios; set BJ_AV2_DATA to a folder that holds av2/"
fi

finish
