# Tests bjepa gallery: locking cases before any future is read, rejected input, the true future as one
# added line.
. "$BJ_ROOT/tests/support/cli.sh"

check "$BJEPA" simulate --cache val.bjc --scenes 150 --seed 4 --split val -q >/dev/null
check "$TEST_GALLERY" model six.safetensors 0 6 12
check "$TEST_GALLERY" model one.safetensors 100 1 3
models="--branch six.safetensors --point one.safetensors"
lock="gallery lock $models --data val.bjc -q"

# ------------------------------------------------------------------------------------------ lock

run 0 $lock --out gal
err_empty
out_has "150 scenes, futures hidden"
check grep -qE '^branch +K=6: [0-9]+ scenes pass the map screen \([0-9.]+ %\)' out
check grep -qE '^point +K=1: ' out
check test "$(grep -cE '^  [A-H]  0' out)" -eq 8
out_has "next: bjepa gallery draw gal --data val.bjc"
out_lacks "fewer cases"
check test "$(sha256sum <gal/manifest.json | cut -c1-64)" = "$(grep manifest.json out | cut -c1-64)"
check test "$(ls gal | tr '\n' ' ')" = "atlas.svg case_1.svg case_2.svg case_3.svg case_4.svg \
case_5.svg case_6.svg case_7.svg case_8.svg manifest.json mechanism.svg "
check test -z "$(ls -A | grep tmp)"
check test -z "$(grep -lE 'hindsight|nan|inf ' gal/*)"
check test "$(grep -c '^<g transform="translate.*clip-path' gal/atlas.svg)" -eq 16
check test "$(grep -c '^<g transform="translate.*clip-path' gal/mechanism.svg)" -eq 12
check test "$(grep -c '<title>candidate' gal/case_1.svg)" -eq 7
check test "$(grep -c '<title>candidate' gal/atlas.svg)" -eq 56
if command -v python3 >/dev/null; then
    check python3 - <<'END_PYTHON'
import hashlib, json, re
import xml.etree.ElementTree as tree
m = json.load(open("gal/manifest.json"))
sha = lambda path: hashlib.sha256(open(path, "rb").read()).hexdigest()
assert m["schema"] == "branchjepa-gallery-1" and "SHA-256 of SEED:SCENARIO_ID" in m["rule"]
assert m["screen"] == {"radius_m": 3, "outside": 0.1, "mass": 0.8, "drivable_tolerance_m": 0.1}
assert m["models"]["branch"]["sha256"] == sha("six.safetensors") and m["models"]["branch"]["K"] == 6
assert m["models"]["point"]["sha256"] == sha("one.safetensors") and m["models"]["point"]["K"] == 1
n = m["counts"]
assert n["scenes"] == 150 > n["vehicle_or_bus"] > n["strict"] >= n["cases"] == len(m["cases"]) == 8
assert n["branch"]["pass_rate"] == n["branch"]["passes"] / 150
assert n["branch"]["passes"] > n["branch"]["no_point_outside"] >= n["strict"]
assert n["strict"] > n["strict_with_several_maneuvers"] > 0
assert len({c["scenario_id"] for c in m["cases"]}) == 8
for c in m["cases"]:
    assert c["order_sha256"] == hashlib.sha256(b"0:" + c["scenario_id"].encode()).hexdigest()
    assert c["focal_type"] in ("vehicle", "bus")
    for model, K in ("branch", 6), ("point", 1):
        assert len(c[model]["candidates"]) == K
        assert abs(sum(k["weight"] for k in c[model]["candidates"]) - 1) < 1e-5
        for k in c[model]["candidates"]:
            assert k["outside_3m"] == 0 and k["points_drivable"] == k["points"] == 60
assert len(m["cases"][0]["maneuvers"]) == 1 < len(m["cases"][1]["maneuvers"])
assert {i["file"] for i in m["images"]} == {"atlas.svg", "mechanism.svg"} | {
    "case_%d.svg" % i for i in range(1, 9)}
assert m["images"][-1]["file"] == "atlas.svg"
for i in m["images"]:
    assert i["sha256"] == sha("gal/" + i["file"]), i["file"]
    tree.parse("gal/" + i["file"])
END_PYTHON
fi

# Same bytes again, with any number of threads; other cases with another seed.
cp -r gal kept
for threads in 1 3; do
    run 0 $lock --out again -j $threads
    check diff -r gal again
    rm -r again
done
run 0 $lock --out other --seed 1 --cases 3 --json
check grep -qE '^\{"schema": 1, "type": "gallery lock", "scenes": 150, .*"cases": 3, ' out
check test "$(ls other | wc -l)" -eq 6
check sh -c '! cmp -s gal/case_1.svg other/case_1.svg || ! cmp -s gal/case_2.svg other/case_2.svg'
check grep -q '"seed": 1,' other/manifest.json

# A locked gallery is never replaced.
run 4 $lock --out gal
err_has "gal: already exists"
check diff -r gal kept

# ----------------------------------------------------------------------------------------- blind

mkdir seen unseen
cp val.bjc seen
check "$TEST_AUDIT" zero val.bjc unseen/val.bjc
check test "$(cmp -l seen/val.bjc unseen/val.bjc | wc -l)" -gt 10000
for side in seen unseen; do
    (cd $side && "$BJEPA" gallery lock --branch ../six.safetensors --point ../one.safetensors \
        --data val.bjc --out gal -q >../$side.out 2>&1)
    verdict $? "lock with $side/val.bjc"
done
check diff -r seen/gal unseen/gal
check cmp seen.out unseen.out

# ------------------------------------------------------------------------------------------ draw

run 0 gallery draw gal --data val.bjc
err_empty
check test "$(wc -l <out)" -eq 10
check test "$(tail -1 out)" = gal/atlas_hindsight.svg
for name in atlas mechanism case_1 case_2 case_3 case_4 case_5 case_6 case_7 case_8; do
    check test "$(grep -c '^<g id="hindsight"' gal/${name}_hindsight.svg)" -eq 1
    grep -v '^<g id="hindsight".*</g>$' gal/${name}_hindsight.svg >without
    check cmp without gal/$name.svg
    check cmp gal/$name.svg kept/$name.svg
done
check grep -q 'stroke-dasharray' gal/case_1_hindsight.svg
check test "$(grep -o '<path d="M[-0-9. L]*"/></g>' gal/atlas_hindsight.svg | wc -l)" -eq 16
cp gal/atlas_hindsight.svg first.svg
run 0 gallery draw gal --data val.bjc -q
out_empty
check cmp gal/atlas_hindsight.svg first.svg
# Other futures, other line: what is drawn is what happened.
cp -r kept zero
run 0 gallery draw zero --data unseen/val.bjc -q
check sh -c '! cmp -s zero/case_2_hindsight.svg gal/case_2_hindsight.svg'
if command -v python3 >/dev/null; then
    run 0 data show val.bjc --out scene.json \
        "$(sed -n 's/.*"scenario_id": "\([^"]*\)".*/\1/p' gal/manifest.json | head -1)"
    check python3 - <<'END_PYTHON'
import json, re
m = json.load(open("gal/manifest.json"))
scene = json.load(open("scene.json"))
image = next(i for i in m["images"] if i["file"] == "case_1.svg")
line = re.search('^<g id="hindsight".*$', open("gal/case_1_hindsight.svg").read(), re.M).group()
paths = re.findall(r'<path d="M([^"]*)"/></g>', line)
assert len(paths) == len(image["panels"]) == 2
p = image["panels"][0]
expected = [[0, 0]] + scene["future"]
found = [[float(v) for v in at.split()] for at in paths[0].split("L")]
assert len(found) == len(expected) == 61
for (x, y), (a, b) in zip(expected, found):
    assert abs(a - (p["left"] - y) * p["pixels_per_meter"]) <= 0.051
    assert abs(b - (p["height"] - (x - p["back"]) * p["pixels_per_meter"])) <= 0.051
END_PYTHON
fi

# -------------------------------------------------------------------------------------- refusals

# refused TEXT ARGUMENT...: nothing of hindsight appears.
refused() {
    local text=$1
    shift
    run 4 gallery draw "$@"
    err_has "$text"
    out_empty
    check test -z "$(ls changed | grep hindsight)"
    rm -r changed
    cp -r kept changed
}
cp -r kept changed
sed -i 's/</ </2' changed/case_3.svg
refused "changed/case_3.svg: the picture changed since the gallery was locked" changed --data val.bjc
rm changed/mechanism.svg
refused "changed/mechanism.svg: the picture is missing" changed --data val.bjc
for field in "map_sha256:its raw map" "areas_sha256:its drivable area" \
    "observed_sha256:the observed part of the scene"; do
    sed -i "s/^\( *\"${field%%:*}\": \"\)......./\1aaaaaaa/" changed/manifest.json
    refused "': ${field#*:} changed since the gallery was locked" changed --data val.bjc
done
sed -i '/"data":/s/observed_sha256": "......./observed_sha256": "aaaaaaa/' changed/manifest.json
refused "val.bjc: the observed part of its scenes changed" changed --data val.bjc
check "$BJEPA" simulate --cache fewer.bjc --scenes 149 --seed 4 --split val -q >/dev/null
refused "fewer.bjc: has 149 scenes, expected at least 150, as in the locked gallery" changed --data fewer.bjc
check "$BJEPA" simulate --cache strange.bjc --scenes 150 --seed 5 --split val -q >/dev/null
refused "is missing" changed --data strange.bjc
cp six.safetensors moved.safetensors
check "$TEST_GALLERY" model six.safetensors 1 6 12
refused "six.safetensors: the branch model changed since the gallery was locked" changed --data val.bjc
run 0 gallery draw changed --data val.bjc --branch moved.safetensors -q
check cmp changed/atlas_hindsight.svg first.svg
rm -r changed
cp -r kept changed
mv moved.safetensors six.safetensors
mv one.safetensors gone
refused "one.safetensors: the point model is missing; give its new path with --point" changed --data val.bjc
mv gone one.safetensors

# The manifest is computed again, so edits that no digest covers are found, too.
for edit in 's/"seed": 0,/"seed": 4711,/:"order_sha256"' 's/"strict": [0-9]*/"strict": 999/:"strict"' \
    '0,/"maneuvers": \[.*\]/s//"maneuvers": ["stop", "left"]/:"maneuvers"' \
    '0,/"order_sha256": "......./s//"order_sha256": "aaaaaaa/:"order_sha256"' \
    '0,/"outside_3m": [0-9.e-]*/s//"outside_3m": 0.5/:"outside_3m"' \
    '0,/"pixels_per_meter": [0-9.]*/s//"pixels_per_meter": 1/:"pixels_per_meter"'; do
    sed -i "${edit%:\"*}" changed/manifest.json
    check sh -c '! cmp -s changed/manifest.json kept/manifest.json'
    refused "expected" changed --data val.bjc
    check grep -qE "changed/manifest.json: line [0-9]+ changed since .*${edit##*:\"}" err
done

for edit in 's/gallery-1"/gallery-9"/:schema is' 's/"place": 1, "model"/"place": 9, "model"/:place' \
    's|"file": "|"file": "../|:file' 's/"images"/"pictures"/:images' '$d:byte'; do
    sed -i "${edit%:*}" changed/manifest.json
    run 3 gallery draw changed --data val.bjc
    err_has "changed/manifest.json: "
    err_has "${edit##*:}"
    cp kept/manifest.json changed/manifest.json
done

# ---------------------------------------------------------------------------- few cases, and none

run 0 $lock --out few --limit 12 --cases 20
out_has "fewer than the 20 requested cases: no more scenes pass the strict screen"
run 0 gallery draw few --data val.bjc -q
check grep -q 'id="hindsight"' few/atlas_hindsight.svg
check "$TEST_GALLERY" model wild.safetensors 0 6 1e5
run 0 gallery lock --branch wild.safetensors --point one.safetensors --data val.bjc --out none -q
out_has "branch  K=6: 0 scenes pass the map screen (0.00 %)"
out_has "no scene passes the strict screen, so the gallery is empty"
check test "$(ls none | tr '\n' ' ')" = "atlas.svg manifest.json "
check grep -q 'There is no case to show' none/atlas.svg
run 0 gallery draw none --data val.bjc
check test "$(cat out)" = none/atlas_hindsight.svg

# -------------------------------------------------------------------------------------- campaign

check "$TEST_AUDIT" campaign camp val.bjc
run 0 gallery lock camp --data val.bjc --out from_campaign -q --limit 20
check grep -q '"path": "camp/runs/fullset/seed-0/ckpt/best/model.safetensors"' from_campaign/manifest.json
check grep -q '"path": "camp/runs/point/seed-0/ckpt/best/model.safetensors"' from_campaign/manifest.json
run 0 gallery draw from_campaign --data val.bjc -q
run 4 gallery lock camp --data val.bjc --out x -q --model-seed 1
err_has "camp/runs/point/seed-1: this run is not finished"
run 0 gallery lock camp --data val.bjc --out seed1 -q --limit 20 --model-seed 1 --point one.safetensors
check grep -q 'fullset/seed-1' seed1/manifest.json
run 2 gallery lock camp --data val.bjc --out x -q --model-seed 7
err_has "camp: has no arm 'fullset' with seed 7"
run 2 gallery lock camp --data val.bjc --out x -q --point fullset
err_has "the point model has K = 6, expected 1"

# ---------------------------------------------------------------------------------------- misuse

run 2 gallery lock $models --out x
err_has "--data CACHE is missing"
run 2 gallery lock $models --data val.bjc
err_has "--out GALLERY is missing"
run 2 gallery lock --branch six.safetensors --data val.bjc --out x
err_has "found no model, expected a campaign, or both --branch and --point"
run 5 gallery lock --branch six.safetensors --point no.safetensors --data val.bjc --out x
err_has "no.safetensors"
run 5 gallery lock $models --data no.bjc --out x -q
run 5 $lock --out nowhere/x
run 2 gallery draw gal
err_has "--data CACHE is missing"
run 5 gallery draw nowhere --data val.bjc
err_has "nowhere/manifest.json"
run 2 gallery lok
err_has "did you mean 'lock'?"
run 0 gallery --help
out_has "bjepa gallery lock"
check test ! -e x
check test -z "$(ls -A . | grep tmp)"

# -------------------------------------------------------------------------------------- PNG, PDF

case $(/sbin/ldconfig -p) in
*librsvg-2.so.2*) ;;
*)
    run 2 gallery draw few --data val.bjc --png
    err_has "librsvg2-2"
    echo "skipped: PNG and PDF; scripts/install_deps.sh pictures installs librsvg"
    finish
    ;;
esac
if [ "${BJ_SANITIZE:-}" = thread ]; then
    echo "skipped: PNG and PDF; the libraries that draw them are not built for the thread sanitizer"
    finish
fi
run 0 gallery lock $models --data val.bjc --out one -q --cases 1
run 0 gallery draw one --data val.bjc --png --pdf -q
check test "$(ls one | tr '\n' ' ')" = "$(echo {atlas,case_1,mechanism}{.pdf,.png,.svg,_hindsight.pdf,_hindsight.png,_hindsight.svg} manifest.json | tr ' ' '\n' | LC_ALL=C sort | tr '\n' ' ')"
check test "$(stat -c %s one/case_1.png)" -gt 30000
check sh -c '! cmp -s one/case_1.png one/case_1_hindsight.png'

finish
