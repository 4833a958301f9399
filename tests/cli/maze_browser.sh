# Tests the page of bjepa maze show in Chromium (tests/report/maze.mjs).
. "$BJ_ROOT/tests/support/cli.sh"

if [ -n "${BJ_SANITIZE:-}" ]; then
    echo "skipped: a page is the same from a sanitizer build; cli.maze_show looks at its content"
    exit 77
fi
chromium=$(command -v chromium || true)
if [ -z "$chromium" ] || ! command -v node >/dev/null || [ ! -e "$BJ_ROOT/.browser/version.txt" ]; then
    echo "skipped: no Chromium with playwright-core; scripts/install_browser.sh installs them"
    exit 77
fi

check "$TEST_MAZE_FILE" sample graph.json
run 0 maze show graph.json -o maze.html
CHROMIUM=$chromium node "$BJ_ROOT/tests/report/maze.mjs" maze.html
verdict $? "the page in Chromium"
finish
