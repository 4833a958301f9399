# Tests the pages of bjepa report and bjepa view in Chromium (tests/report/page.mjs).
. "$BJ_ROOT/tests/support/cli.sh"
. "$BJ_ROOT/tests/report/campaign.sh"

if [ -n "${BJ_SANITIZE:-}" ]; then
    echo "skipped: a page is the same from a sanitizer build; cli.report compares its content"
    exit 77
fi
chromium=$(command -v chromium || true)
if [ -z "$chromium" ] || ! command -v node >/dev/null || [ ! -e "$BJ_ROOT/.browser/version.txt" ]; then
    echo "skipped: no Chromium with playwright-core; scripts/install_browser.sh installs them"
    exit 77
fi

little_campaign camp
run 0 simulate --cache val.bjc --scenes 12 --seed 9 --split val --quiet --jobs 1
run 0 report camp --scenes val.bjc --out report.html --threads 1
run 0 submit camp/runs/fullset/seed-0/ckpt/best val.bjc --out 'one <b>"&.parquet' --threads 1
run 0 view 'one <b>"&.parquet' --av2 val.bjc --count 3 --out view.html

CHROMIUM=$chromium node "$BJ_ROOT/tests/report/page.mjs" report.html view.html
verdict $? "the pages in Chromium"
finish
