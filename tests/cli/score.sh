# Tests bjepa score: every kind of violation, exit codes, text, JSON and CSV, ground truth from folders and
# caches.
. "$BJ_ROOT/tests/support/cli.sh"
make() { check "$TEST_SCORE" submission "$1.parquet" "$1"; }
check "$TEST_SCORE" scenarios val
a=00000000-0000-4000-8000-00000000000a b=00000000-0000-4000-8000-00000000000b
d=00000000-0000-4000-8000-00000000000d

# A good file: counts, official metrics, distribution, groups. Hand-computed in test_score.c.
make good
run 0 score good.parquet --av2 val
err_empty
out_has "good.parquet: 7 rows, 4 scenarios"
out_has "check: passed"
out_has "ground truth: 4 scenarios, 3 scored, 1 without a future; 2 with interpolated gaps in the future"
check grep -qE '^minADE \(m\) +0\.8889 +0\.5722$' out
check grep -qE '^minADE at minFDE \(m\) +0\.8889 +1\.8694$' out
check grep -qE '^minFDE \(m\) +2\.1667 +2\.0000$' out
check grep -qE '^miss rate \(2 m\) +0\.3333 +0\.3333$' out
check grep -qE '^brier-minFDE \(m\) +2\.2708 +2\.2342$' out
check grep -qE '^trajectory Energy Score \(m\)  0\.8089 = observation 1\.2889 - dispersion 0\.4800$' out
check grep -qE '^left +1 +1\.5000 +1\.5000 ' out
check grep -qE '^cyclist +1 ' out
check grep -qE '^pittsburgh +1 ' out
check grep -qE '^10-15 +1 ' out

# JSON is one object, CSV has a line for every scored scene.
run 0 score good.parquet --av2 val --json --rows rows.csv
check test "$(wc -l <out)" -eq 1
out_has '"type":"score","file":"good.parquet","truth":"val","passed":true,"rows":7'
out_has '"scored":3,"missing":0,"malformed":0,"no_future":1,"unreadable":0,"unknown":0,"gaps":2'
out_has '{"by":"all","key":"all","scenes":3,"modes":2,'
out_has '{"by":"speed","key":"2-5","scenes":1,'
check test "$(wc -l <rows.csv)" -eq 4
check grep -q "^$b,b17,straight,cyclist,austin,2-5,7,1," rows.csv

# The same truth from a cache.
run 0 data prep --av2 val --out val.bjc
run 0 score good.parquet --av2 val.bjc
out_has "ground truth: 4 scenarios, 3 scored, 1 without a future; 2 with interpolated gaps"
check grep -qE '^brier-minFDE \(m\) +2\.2708 +2\.2342$' out

# The check alone needs no truth.
run 0 score --check good.parquet
check test "$(cat out)" = "good.parquet: 7 rows, 4 scenarios
check: passed"
run 0 submit --check good.parquet
out_has "check: passed"
run 0 score --check good.parquet --json
out_has '"truth":null,"passed":true'
out_lacks groups

# Violations: the row, the scenario, what was found and expected; exit 4, the rest is scored.
violates() { # violates WHAT SCORED TEXT...
    make "$1"
    run 4 score "$1.parquet" --av2 val
    out_has "ground truth: 4 scenarios, $2 scored"
    check grep -qE '^minFDE \(m\) +[0-9.]+ +[0-9.]+$' out
    shift 2
    for text; do out_has "$text"; done
}
violates points 2 "row 1, scenario $a: trajectory has 60 x and 59 y values, expected 60" "points 1"
violates nonfinite 2 "row 2, scenario $a: y of point 7 is nan, expected a finite number"
violates infinite 2 "row 2, scenario $a: x of point 59 is -inf, expected a finite number"
violates negative 2 "row 0, scenario $a: probability is -0.5, expected 0 to 1" \
    "row 1, scenario $a: probability is 1.3, expected 0 to 1"
violates above 2 "row 3, scenario $b: probability is 1.0000001, expected 0 to 1"
violates nan 2 "row 5, scenario 00000000-0000-4000-8000-00000000000c: probability is nan"
violates sum 2 "row 4, " "probabilities of the 2 modes of track '17' sum to 1.0001, expected 1"
violates modes 3 "row 12, scenario $b: track 'b17' has 7 modes, expected at most 6"
violates duplicate 3 "row 7, " "repeats row 5 of track '17'"
violates track 3 "row 7, scenario $b: track 'other' (1 rows) is not the focal track, which is 'b17'"
violates unknown 3 "row 7, scenario 00000000-0000-4000-8000-0000000000ff: the ground truth contains no such"
violates missing 2 "without a row, scenario $b: the scenario is not in the file; its focal track is 'b17'"
violates focal-missing 2 "without a row, scenario $b: no row for the focal track 'b17'"
violates no-ids 2 "row 6: has no scenario_id" "row 3, scenario $b: has no track_id"
violates inconsistent 3 "row 7, scenario $a: track 'other' has 2 modes, but track '17' has 3"
violates weights 3 "row 7, scenario $a: track 'other' and track '17' have modes with different"
make shuffled
run 0 score shuffled.parquet --av2 val
run 0 score modes.parquet --av2 val --max-modes 7
run 4 submit --check sum.parquet
out_has "1 violation (sum 1)"

# --strict keeps the scores back; --list caps the list, never the count.
run 4 score no-ids.parquet --av2 val --strict --rows strict.csv
out_has "no scores, because of --strict"
out_lacks minFDE
check test ! -e strict.csv
run 4 score no-ids.parquet --av2 val --strict --json
out_lacks groups
run 4 score no-ids.parquet --av2 val --list 1
out_has "4 violations (id 2, missing 2)"
out_has "  and 3 more"
check test "$(grep -c '^  row\|^  without a row' out)" -eq 1
run 4 score no-ids.parquet --av2 val --json
out_has '"violations_total":4'
out_has "{\"kind\":\"missing\",\"row\":null,\"scenario_id\":\"$d\""

# A truth with a damaged scenario says so; its scene is not scored.
cp -r val damaged
head -c 900 val/$a/scenario_$a.parquet >damaged/$a/scenario_$a.parquet
run 3 score good.parquet --av2 damaged
out_has "ground truth: 4 scenarios, 2 scored, 1 without a future, 1 unreadable"
err_has "scenario_$a.parquet"
mkdir future && cp -r val/$d future
check "$TEST_SCORE" submission only.parquet missing # whatever: nothing can be scored
run 4 score only.parquet --av2 future
out_has "0 scored"

# Files that are no submission, paths that are not there, misuse.
run 3 score --check val/$a/scenario_$a.parquet
err_has "probability"
echo hello >hello.parquet
run 3 score --check hello.parquet
err_has "hello.parquet"
run 5 score --check none.parquet
run 5 score good.parquet --av2 nowhere
mkdir empty
run 3 score good.parquet --av2 empty
err_has "empty: found no scenario"
run 2 score good.parquet
err_has "--av2 DIR_OR_CACHE is missing"
run 2 score good.parquet --check --av2 val
run 2 score good.parquet --av2 val --max-modes 65
run 2 score
run 2 score good.parquet --av2 val --strct
err_has "did you mean '--strict'?"

finish
