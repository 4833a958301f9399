#!/usr/bin/env bash
# install_browser.sh - Chromium and playwright-core, which drive the tests of pages.
#
# Nothing here is needed to build or use bjepa, or to open its pages: tests/report looks at them in
# a real browser and is skipped without. Chromium and Node.js come from Debian, playwright-core from
# npm into .browser (ignored by git); it runs no install scripts and downloads no browser.
set -euo pipefail
cd "$(dirname "$0")/.."

version=1.65.0
scripts/install_deps.sh browser

stamp=.browser/version.txt
if [ "$(cat "$stamp" 2>/dev/null)" = "$version" ]; then exit 0; fi
echo "installing into .browser: playwright-core $version"
rm -rf .browser
mkdir .browser
npm install --prefix .browser --no-save --no-package-lock --no-audit --no-fund --ignore-scripts \
    --loglevel error "playwright-core@$version" >/dev/null
printf '%s\n' "$version" >"$stamp" # last, so that an interrupted run starts over
