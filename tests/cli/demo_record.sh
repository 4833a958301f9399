# Tests that `bjepa demo` gives the numbers of docs/demo.json, which the table in README.md shows.
#
# Runs only if BJ_LONG=1 is set, because the demo trains for several minutes. Skipped if the instruction set
# differs from that of the record, because the last digits depend on it.
. "$BJ_ROOT/tests/support/cli.sh"

skip() {
    echo "skipped: $1"
    exit 77
}

command -v python3 >/dev/null || skip "python3 is not installed"
[ "${BJ_LONG:-}" = 1 ] || skip "the demo trains for several minutes; 'make test-long' runs this test"

record=$BJ_ROOT/docs/demo.json
field() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$record" "$1"; }
"$BJEPA" version | grep -qF '(float)' || skip "the record was computed in float"
run 0 bench --json --only infer --rounds 1 --threads 1
isa=$(python3 -c 'import json; print(json.load(open("out"))["isa"])')
[ "$isa" = "$(field isa)" ] ||
    skip "this machine uses the instruction set $isa, the record was computed with $(field isa)"

unset DISPLAY WAYLAND_DISPLAY
run 0 demo --out demo
python3 "$BJ_ROOT/scripts/demo_record.py" compare "$record" demo
verdict $? "the demo differs from docs/demo.json; scripts/readme_numbers.sh writes a new record"
finish
