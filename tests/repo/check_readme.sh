# Tests that README.md has at most 150 lines and that its table shows the numbers of docs/demo.json.
set -eu
limit=150

too_long() { [ "$(wc -l <"$1")" -gt "$limit" ]; }

# Tests that the check finds a file that is one line too long.
seq $limit >long.md
if too_long long.md; then
    echo "the check is wrong: it rejects a file of $limit lines" >&2
    exit 1
fi
echo more >>long.md
if ! too_long long.md; then
    echo "the check is wrong: it accepts a file of $((limit + 1)) lines" >&2
    exit 1
fi

if too_long "$BJ_ROOT/README.md"; then
    echo "README.md has $(wc -l <"$BJ_ROOT/README.md") lines, expected at most $limit" >&2
    exit 1
fi
if ! command -v python3 >/dev/null; then
    echo "skipped: python3 is not installed"
    exit 77
fi
python3 "$BJ_ROOT/scripts/demo_record.py" check "$BJ_ROOT/docs/demo.json" "$BJ_ROOT/README.md"
