# Tests bjepa data show: one scene as text, safetensors, JSON and SVG, selection of the scene, errors.
. "$BJ_ROOT/tests/support/cli.sh"

count() { grep -oF -e "$1" "$2" | wc -l; } # count TEXT FILE
well_formed() { # well_formed FILE: as far as this machine can tell
    ! command -v python3 >/dev/null ||
        python3 -c 'import sys, xml.etree.ElementTree as t; t.parse(sys.argv[1])' "$1"
}

check "$TEST_SCENE_EXPORT" cache cache 40
check mkdir scenarios
check "$TEST_SCENARIO_SCENE" scenarios scenarios 4
run 0 data prep --av2 scenarios --out roads
id=00000010-1111-4222-8333-00000001eef0 # scene 16 of loader_case.h: 12 neighbors, 29 polylines

# ----------------------------------------------------------------------------------------- text

run 0 data show cache "$id"
err_empty
out_has "scene         $id (#16 of 40)"
out_has "city          there"
out_has "focal         pedestrian 516, "
out_has "observed at 49 of 50 steps"
out_has "origin (1016.250, -2016.500) m, heading 2.820000 rad"
out_has "neighbors     12 of 12"
out_has "polylines     29 of 29"
out_has "1 drivable areas"
out_has "observed at 60 of 60 steps"
cp out text
run 0 data show cache '#16'
check cmp out text
run 0 data show cache 00000010 # the beginning of one id
check cmp out text
run 0 data show cache '#3'
out_has "future        unknown"

# A scenario whose numbers are known: 6 m/s straight on, two others, three lanes and a crossing.
run 0 data show roads '#2'
out_has "focal         vehicle 100, 6.00 m/s, observed at 50 of 50 steps"
out_has "neighbors     2 of 2, 3.5 to 7.0 m away"
out_has "polylines     4 of 4, 2 in intersections, 1 crosswalks"
out_has "future        ends at (36.00, "
out_has "m, straight; observed at 60 of 60 steps"

# ---------------------------------------------------------------------------------------- files

run 0 data show cache "$id" --out scene.safetensors
out_empty
err_has "wrote scene.safetensors"
for name in focal neighbors nmask polylines pmask future origin heading; do
    check grep -qaF "\"$name\":{\"dtype\"" scene.safetensors
done
check grep -qaF '"neighbors":{"dtype":"F32","shape":[16,50,7]' scene.safetensors
check grep -qaF '"heading":{"dtype":"F64","shape":[]' scene.safetensors
check grep -qaF "\"scenario_id\":\"$id\"" scene.safetensors

run 0 data show cache "$id" -o scene.json
out_empty
check grep -qF "\"scenario_id\":\"$id\"" scene.json
check grep -qF '"origin":[1016.25,-2016.5],"heading":' scene.json
run 0 data show cache "$id" --json
check cmp out scene.json
if command -v python3 >/dev/null; then
    check python3 - scene.json <<'END'
import json, struct, sys
def single(x): return struct.unpack("f", struct.pack("f", x))[0]
s = json.load(open(sys.argv[1]))
assert len(s["focal"]) == 50 and all(len(row) == 7 for row in s["focal"])
assert len(s["neighbors"]) == 12 and len(s["neighbors"][0]) == 50
assert len(s["polylines"]) == 29 and len(s["polylines"][0]) == 10 and len(s["future"]) == 60
assert single(s["focal"][49][6]) == 16 + 349 / 65536 # nine digits hold a float exactly
assert single(s["future"][59][1]) == 16 + 70 / 8 + 119 / 65536
assert s["focal_valid"] == [int(t != 16) for t in range(50)] and s["has_future"] is True
END
    run 0 data show cache '#3' --json
    check python3 -c 'import json; s = json.load(open("out")); assert s["future"] is None'
fi

# -------------------------------------------------------------------------------------- picture

run 0 data show roads '#2' --out scene.svg
out_empty
check well_formed scene.svg
check test "$(count 'class="area" d="M' scene.svg)" -eq 1
check test "$(count '<path class="lane' scene.svg)" -eq 4      # three, and the legend
check test "$(count 'class="lane inner"' scene.svg)" -eq 2
check test "$(count 'class="crosswalk" d="M' scene.svg)" -eq 2 # one, and the legend
check test "$(count '<g class="vehicle"' scene.svg)" -eq 2
check test "$(count '<g class="other"' scene.svg)" -eq 2
check test "$(count '<g class="focal"' scene.svg)" -eq 2
check test "$(count '<path class="future" d="M' scene.svg)" -eq 2
check test "$(count 'r="3.6"' scene.svg)" -eq 6                # a dot each second
check grep -qE '>[0-9]+ m</text>' scene.svg
check sh -c '! grep -qiE "[^a-z](nan|inf)[^a-z]|<script|href=" scene.svg'
run 0 data show cache '#3' --out unknown.svg # without a future
check well_formed unknown.svg
check test "$(count 'class="future"' unknown.svg)" -eq 0
check grep -qF 'future unknown' unknown.svg

# --------------------------------------------------------------------------------------- errors

run 2 data show cache 00000010-1111-4222-8333-00000001eef1
out_empty
err_has "cache: no scene '00000010-1111-4222-8333-00000001eef1' among 40 scenes; did you mean '$id'?"
run 2 data show cache 0000001
err_has "several scene ids begin with '0000001'"
run 2 data show cache '#40'
err_has "found scene number '#40', expected '#0' to '#39'"
run 2 data show cache '#x'
run 2 data show cache ''
run 2 data show cache
run 2 data show cache "$id" --out scene.gif
err_has "expected a name that ends in .safetensors, .json, .svg, .png or .pdf"
check test ! -e scene.gif
run 5 data show none "$id"
err_has "none"
run 3 data show "$BJ_ROOT/README.md" "$id"
for kind in svg json safetensors; do
    run 5 data show cache "$id" --out "missing/scene.$kind"
    err_has "missing/"
done
mkdir folder.svg
run 5 data show cache "$id" --out folder.svg
err_has "cannot replace: Is a directory"

# A damaged scene is rejected and not shown; the other scenes are shown.
cp cache damaged
printf '\377' | dd of=damaged bs=1 seek=65600 conv=notrunc status=none # in the first record
run 3 data show damaged '#0'
out_empty
run 0 data show damaged "$id"

finish
