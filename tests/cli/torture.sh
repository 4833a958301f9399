# Tests a small, seeded part of `make torture` (docs/RELIABILITY.md).
#
# Runs only if BJ_LONG=1 is set, because it takes several minutes.
[ "${BJ_LONG:-0}" = 1 ] || { echo "skipped: BJ_LONG=1 is not set"; exit 77; }
[ -z "${BJ_SANITIZE:-}" ] || { echo "skipped: a sanitizer build"; exit 77; }
command -v python3 >/dev/null || { echo "skipped: python3 is not installed"; exit 77; }
exec python3 "$BJ_ROOT/tests/torture/torture.py" --bjepa "$BJEPA" --n 0.2 --seconds 1000 --seed 7
