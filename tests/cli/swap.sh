# Tests that a checkpoint that is exchanged during the evaluation is never published. BJ_SWAPS sets the
# number of attempts.
. "$BJ_ROOT/tests/support/cli.sh"
. "$BJ_ROOT/tests/support/small_campaign.sh"
command -v python3 >/dev/null || exit 77

check small_campaign camp fullset
check "$BJEPA" lock camp --data val.bjc -q >/dev/null
check python3 "$BJ_ROOT/tests/support/swap.py" "$BJEPA" camp "${BJ_SWAPS:-20}"

finish
