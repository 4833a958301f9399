# Tests every byte of every JSON file of a locked campaign, 200 bits of every binary file, and 1,000
# exchanges of a checkpoint during the evaluation. The short tests are campaign.tamper and cli.swap.
#
# Runs only if BJ_LONG=1 is set, because it takes several minutes.
[ "${BJ_LONG:-0}" = 1 ] || { echo "skipped: BJ_LONG=1 is not set"; exit 77; }
. "$BJ_ROOT/tests/support/cli.sh"

check env BJ_TAMPER=all "$BJ_BUILD/tests/test_campaign_tamper"
BJ_SWAPS=1000 . "$BJ_ROOT/tests/cli/swap.sh"
