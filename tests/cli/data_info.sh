# Tests bjepa data info and data split: known counts, as text and as JSON.
. "$BJ_ROOT/tests/support/cli.sh"

check "$TEST_SCENE_EXPORT" cache cache 200
check mkdir scenarios
check "$TEST_SCENARIO_SCENE" scenarios scenarios 10
run 0 data prep --av2 scenarios --out roads

row() { # row LABEL COUNT: a line of the output that has both
    check grep -qE "^ *$1 +$2( |\$)" out
}

# Scenarios 0 .. 9 drive at 4 .. 13 m/s with i % 4 neighbors, but for the eighth, which nearly
# stands; 4 and 9 have no future.
run 0 data info roads
err_empty
row scenes 10
row "with a future" 8
row maps 10
row "drivable areas" 20
row "complete pasts" 10
row nowhere 10
row vehicle 10
row straight 7
row stop 1
row "0 to 0.5" 1
row "2 to 5" 1
row "5 to 8" 3
row "8 to 11" 3
row "11 to 14" 2
row "-10 to 10" 7
row 0 3
row "1 to 3" 7
row "0 to 11" 10
out_has "focal speed at the last observed step, m/s (mean 7.42, max 13.00)"
check grep -qE '^digest +[0-9a-f]{64}$' out
check grep -qF "$(wc -c <roads | sed -E ':a;s/^([0-9]+)([0-9]{3})/\1,\2/;ta')" out

run 0 data info cache
row scenes 200
row "with a future" 160
row "complete pasts" 0
row here 100
row there 100
row vehicle 67
row pedestrian 67
row bus 66
row maps 1

# The parts: by the rule, whatever the cache.
run 0 data split cache
row scenes 200
fit=$(awk '$1 == "fit" { print $2 }' out) dev=$(awk '$1 == "dev" { print $2 }' out)
check test $((fit + dev)) -eq 200
check test "$dev" -ge 3
run 0 data split cache --list --part dev
check test "$(wc -l <out)" -eq "$dev"
cp out dev
run 0 data split cache --list --part fit
check test "$(wc -l <out)" -eq "$fit"
check sh -c 'sort out dev | uniq -d | wc -l | grep -qx 0'
run 0 data split cache --list
check test "$(grep -c ' dev$' out)" -eq "$dev"
if command -v sha256sum >/dev/null; then # 0x0cbbf312 is 9944/199908 of 2^32
    while read -r id part; do
        first=$(printf %s "$id" | sha256sum | cut -c1-8)
        if [ $((0x$first)) -lt $((0x0cbbf312)) ]; then want=dev; else want=fit; fi
        [ "$part" = "$want" ] || echo "$id"
    done <out >wrong
    check test ! -s wrong
fi

run 0 data split cache --json
out_has "\"scenes\": 200, \"fit\": $fit, \"dev\": $dev"
run 0 data split cache --list --part dev --json
check test "$(grep -c '"part": "dev"' out)" -eq "$dev"
run 0 data info cache --json
if command -v python3 >/dev/null; then
    check python3 - "$fit" "$dev" "$(wc -c <cache)" <<'END'
import json, sys
s = json.load(open("out"))
fit, dev, size = map(int, sys.argv[1:])
assert (s["schema"], s["type"], s["scenes"], s["with_future"]) == (1, "data_info", 200, 160)
assert (s["fit"], s["dev"], s["bytes"], s["maps"]) == (fit, dev, size, 1)
assert s["cities"] == {"there": 100, "here": 100} and s["split"] == "train"
used = [i * 5 % 17 for i in range(200)]
edges = s["neighbors"]["from"] + [99]
assert s["neighbors"]["count"] == [sum(a <= n < b for n in used)
                                   for a, b in zip(edges, edges[1:])]
assert abs(s["neighbors"]["mean"] - sum(used) / 200) < 1e-9 and s["neighbors"]["max"] == 16
lines = [i * 11 % 49 for i in range(200)]
edges = s["polylines"]["from"] + [99]
assert s["polylines"]["count"] == [sum(a <= n < b for n in lines)
                                   for a, b in zip(edges, edges[1:])]
assert sum(s["speed"]["count"]) == 200 and sum(s["maneuvers"].values()) == 160
END
fi

# Errors.
for verb in info split; do
    run 2 data $verb
    run 5 data $verb none
    err_has none
    run 3 data $verb "$BJ_ROOT/README.md"
    out_empty
    run 2 data $verb cache more
done
run 2 data split cache --part dev
err_has "--part needs --list"
run 2 data split cache --list --part test
err_has "expected fit|dev"

finish
