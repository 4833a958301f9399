#!/usr/bin/env bash
# install_browser.sh - installs Chromium and playwright-core for the tests of the HTML pages.
#
# They are not needed to build or use bjepa, or to open its pages. tests/report opens the pages in a
# browser, and these tests are skipped without it. Chromium and Node.js are Debian packages.
# playwright-core comes from npm and is installed in .browser (ignored by git). It runs no install
# scripts and downloads no browser.
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
printf '%s\n' "$version" >"$stamp" # written last, so an interrupted installation starts over
