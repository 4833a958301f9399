#!/usr/bin/env bash
# readme_numbers.sh - writes the numbers of a finished demo into README.md.
#
#   scripts/readme_numbers.sh [DEMO]
#
# DEMO is the folder that `bjepa demo` wrote; the default is demo. The script writes the record
# docs/demo.json and, from this record, the table in README.md (scripts/demo_record.py). If Chromium is
# installed, it also takes the screenshots docs/images/pretrained.png and report.png again. The environment
# variables README and RECORD name other files to write, and no screenshots are taken then. Needs python3.
set -euo pipefail
demo=$(cd "${1:-demo}" && pwd)
readme=${README:-} record=${RECORD:-}
[ -z "$readme" ] || readme=$(realpath -- "$readme")
[ -z "$record" ] || record=$(realpath -- "$record")
cd "$(dirname "$0")/.."

chromium=$(command -v chromium || true)
if [ -n "$chromium" ] && [ -z "$readme" ]; then
    for page in pretrained report; do
        [ -e "$demo/$page.html" ] || continue
        "$chromium" --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1180,1500 \
            --virtual-time-budget=4000 --screenshot="$PWD/docs/images/$page.png" \
            "file://$demo/$page.html" >/dev/null 2>&1
        echo "docs/images/$page.png"
    done
fi

python3 scripts/demo_record.py record "$demo" "${record:-docs/demo.json}"
python3 scripts/demo_record.py table "${record:-docs/demo.json}" "${readme:-README.md}"
echo "${record:-docs/demo.json}"
echo "${readme:-README.md}"
