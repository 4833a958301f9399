# Tests every byte of every JSON file of a locked campaign, 200 bits of every binary file, and 1,000
# exchanges of a checkpoint during the evaluation. The short tests are campaign.tamper and cli.swap.
. "$BJ_ROOT/tests/support/cli.sh"

check env BJ_TAMPER=all "$BJ_BUILD/tests/test_campaign_tamper"
BJ_SWAPS=1000 . "$BJ_ROOT/tests/cli/swap.sh"
