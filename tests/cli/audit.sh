# Tests bjepa audit with checkpoints, campaigns and submissions: values, independence of futures, errors.
. "$BJ_ROOT/tests/support/cli.sh"

check "$BJEPA" simulate --cache val.bjc --scenes 150 --seed 4 --split val -q >/dev/null
check "$TEST_AUDIT" model six.safetensors 0 6
check "$TEST_AUDIT" model one.safetensors 100 1

# ----------------------------------------------------------------------------------- checkpoints

run 0 audit six.safetensors one.safetensors --data val.bjc -q
err_empty
out_has "val.bjc: 150 scenes, 142 of them with a vehicle or bus as the focal road user"
out_has "focal positions inside drivable areas: 142 of 142 (tolerance 0.1 m)"
check grep -qE '^six.safetensors +1 +[0-9.]+ +[0-9.]+ ' out
check test "$(grep -cE '^(six|one).safetensors' out)" -eq 2
out_lacks "a - b"
cp out text
run 0 audit six.safetensors one.safetensors --data val.bjc -q --threads 1
check cmp out text
run 0 audit six.safetensors --data val.bjc -q --limit 20
out_has "val.bjc: 20 scenes"

run 0 audit six.safetensors one.safetensors --data val.bjc -q --json --rows rows.csv \
    --a six.safetensors --b one.safetensors --resamples 200 --seed 3
check test "$(wc -l <out)" -eq 1
out_has '{"schema":1,"type":"audit","data":"val.bjc","scenes_digest":"'
out_has '"total":150,"scenes":142,"origins_inside":142,"tolerance":0.1,"arms":[{"arm":"six.safetensors","seeds":[{"seed":0,"atoms":6,"empty":'
out_has '"comparison":{"a":"six.safetensors","b":"one.safetensors","resamples":200,"seed":3,"level":0.95,"metrics":{"point_mass":{"difference":'
check test "$(wc -l <rows.csv)" -eq 285
check test "$(head -1 rows.csv)" = "arm,scenario_id,point_mass,trajectory_mass,unique_support,entropy_support,mass_weighted_support,trajectory_diversity,endpoint_diversity"
if command -v python3 >/dev/null; then
    cp out all.json
    check python3 - <<'END_PYTHON'
import csv, json
t = json.load(open("all.json"))
rows = list(csv.DictReader(open("rows.csv")))
names = list(t["arms"][0]["mean"])
assert len(names) == 7
for arm in t["arms"]:
    own = [r for r in rows if r["arm"] == arm["arm"]]
    assert len(own) == t["scenes"]
    for name in names:
        mean = sum(float(r[name]) for r in own) / len(own)
        assert abs(mean - arm["mean"][name]) < 1e-12 and arm["population_sd"][name] == 0
        assert arm["seeds"][0][name] == arm["mean"][name]
    assert arm["seeds"][0]["empty"] == sum(float(r["entropy_support"]) == 0 for r in own)
a, b = t["arms"]
for name, d in t["comparison"]["metrics"].items():
    assert abs(d["difference"] - a["mean"][name] + b["mean"][name]) < 1e-12, name
    assert d["low"] <= d["difference"] <= d["high"]
assert 0 < a["mean"]["trajectory_mass"] < a["mean"]["point_mass"] < 1
assert b["mean"]["endpoint_diversity"] == 0 < a["mean"]["endpoint_diversity"]
assert a["mean"]["unique_support"] > 1 >= b["mean"]["unique_support"]
END_PYTHON
fi

# ---------------------------------------------------------------------------------------- blind

# Every future zero: the same bytes, in every format.
mkdir seen unseen
mv val.bjc seen/val.bjc
check "$TEST_AUDIT" zero seen/val.bjc unseen/val.bjc
check test "$(cmp -l seen/val.bjc unseen/val.bjc | wc -l)" -gt 10000
for format in --json --csv --quiet; do
    for side in seen unseen; do
        (cd $side && "$BJEPA" audit ../six.safetensors ../one.safetensors --data val.bjc -q $format \
            --a ../six.safetensors --b ../one.safetensors --rows rows.csv >../$side.out 2>&1)
        verdict $? "audit of $side/val.bjc"
    done
    check cmp seen.out unseen.out
    check cmp seen/rows.csv unseen/rows.csv
    check test -s seen.out
done
mv seen/val.bjc val.bjc

# ------------------------------------------------------------------------------------- campaign

check "$TEST_AUDIT" campaign grid val.bjc
run 0 audit grid --data val.bjc -q
err_has "grid/runs/point/seed-1: not finished, left out"
check grep -qE '^fullset +2 +[0-9.]+ ± [0-9.]+ ' out
check grep -qE '^point +1 +[0-9.]+ +[0-9.]+ ' out
run 2 audit grid --data val.bjc -q --a fullset --b point
err_has "arm 'fullset' has seed 1, but arm 'point' does not"
out_empty
echo '{}' >grid/runs/point/seed-1/result.json
run 0 audit grid --data val.bjc -q --a fullset --b point --resamples 300
err_empty
out_has "fullset minus point: per-scene values, averaged over seeds; 300 bootstrap resamples of the scenes, seed 0"
check grep -qE '^drivable trajectory mass, % +[0-9.]+ +[0-9.]+ +-?[0-9.]+ +\[-?[0-9.]+, -?[0-9.]+\]$' out
cp out first
run 0 audit grid --data val.bjc -q --a fullset --b point --resamples 300 --threads 1
check cmp out first
run 0 audit grid --data val.bjc -q --csv
check test "$(wc -l <out)" -eq 29
cp out seeds.csv
run 0 table seeds.csv -m unique_support
out_has fullset
run 0 audit grid six.safetensors --data val.bjc -q
check test "$(grep -cE '^(fullset|point|six.safetensors) ' out)" -eq 3
run 2 audit grid --data val.bjc -q --a fulset --b point
err_has "no arm 'fulset'; did you mean 'fullset'?"
rm grid/runs/*/*/result.json
run 4 audit grid --data val.bjc -q
err_has "no run of this campaign is finished"

# ----------------------------------------------------------------------------------- submission

check "$TEST_AUDIT_SUBMISSION" make good good.parquet good
run 0 audit --submission good.parquet --av2 good -q
err_empty
out_has "good.parquet against good: 3 scenarios, 2 audited, 1 other type"
out_has "focal positions inside drivable areas: 1 of 2"
out_has "scenes without a feasible candidate: 1"
check grep -qE '^drivable point mass, % +37\.917$' out
check grep -qE '^feasible unique support, branches +1\.000$' out
run 0 audit --submission good.parquet --av2 good -q --json --rows rows.csv
out_has '"total":3,"audited":2,"other_type":1,"missing":0,"malformed":0,"unreadable":0,"unknown":0,"origins_inside":1,"empty":1'
out_has '"mean":{"point_mass":0.37916666666666665,"trajectory_mass":0.25,"unique_support":1,'
check test "$(wc -l <rows.csv)" -eq 4
check grep -q '^00000000-0000-4000-8000-00000000000c,17,cyclist,other type,,,,,,,,,,$' rows.csv
run 0 audit --submission good.parquet --av2 good -q --csv
check grep -qx 'trajectory_mass,0.25' out

check "$TEST_AUDIT_SUBMISSION" make bad bad.parquet
run 4 audit --submission bad.parquet --av2 bad -q
out_has "7 scenarios, 2 audited, 1 other type, 1 missing, 2 malformed, 1 unreadable"
err_has "scenario 00000000-0000-4000-8000-00000000000d: missing"
err_has "scenario 00000000-0000-4000-8000-00000000000e: malformed: the probabilities of the 2 modes sum to 0.9"
err_has "log_map_archive_00000000-0000-4000-8000-00000000000f.json"
err_has "1 scenario in the submission is not in bad"
run 4 audit --submission bad.parquet --av2 bad -q --list 1
err_has "3 more scenarios could not be audited"

# A cache instead of files: the same numbers as for the model that wrote the submission.
check "$BJEPA" submit six.safetensors val.bjc --out six.parquet >/dev/null 2>&1
run 0 audit --submission six.parquet --av2 val.bjc -q
err_empty
out_has "six.parquet against val.bjc: 150 scenarios, 142 audited, 8 other type"
out_has "focal positions inside drivable areas: 142 of 142"
run 0 audit --submission six.parquet --av2 val.bjc -q --csv
cp out submitted.csv
run 0 audit six.safetensors --data val.bjc -q --csv
for metric in point_mass unique_support endpoint_diversity; do
    direct=$(sed -n "s/^six.safetensors,0,$metric,//p" out)
    check awk -v a="$direct" -v b="$(sed -n "s/^$metric,//p" submitted.csv)" \
        'BEGIN { exit !(a != "" && b != "" && a - b < 1e-5 && b - a < 1e-5) }'
done
run 5 audit --submission six.parquet --av2 none.bjc
err_has "none.bjc"
head -c 2000 six.parquet >cut.bjc
run 3 audit --submission six.parquet --av2 cut.bjc

# ---------------------------------------------------------------------------------------- misuse

run 2 audit
run 2 audit six.safetensors
err_has "--data CACHE is missing"
run 2 audit --data val.bjc
run 2 audit six.safetensors --data val.bjc --a six.safetensors
err_has "--a and --b must be given together"
run 2 audit six.safetensors --data val.bjc --json --csv
run 2 audit six.safetensors --data val.bjc --av2 good
run 2 audit --submission good.parquet
err_has "--av2 DIR_OR_CACHE is missing"
run 2 audit six.safetensors --submission good.parquet --av2 good
run 2 audit six.safetensors --data val.bjc --resamples 0
run 2 audit six.safetensors six.safetensors --data val.bjc -q
err_has "already has a model with seed 0"
run 5 audit six.safetensors --data nowhere.bjc
run 5 audit nowhere.safetensors --data val.bjc -q
run 3 audit good.parquet --data val.bjc -q
run 5 audit --submission good.parquet --av2 nowhere
run 0 audit --help
out_has "bjepa audit runs/world --data val.bjc --a fullset --b point"

finish
