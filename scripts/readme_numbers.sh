#!/usr/bin/env bash
# readme_numbers.sh - Writes the numbers of a finished demo into README.md.
#
#   scripts/readme_numbers.sh [DEMO]
#
# DEMO is the folder of `bjepa demo`; demo by default. The lines between `<!-- demo table -->` and
# `<!-- /demo table -->` are replaced by a table that is made from the demo's files alone. Where Chromium is
# installed, docs/images/pretrained.png and report.png are taken again. README is the file to change. Needs
# python3.
set -euo pipefail
demo=$(cd "${1:-demo}" && pwd)
cd "$(dirname "$0")/.."
readme=${README:-README.md}

chromium=$(command -v chromium || true)
if [ -n "$chromium" ] && [ "$readme" = README.md ]; then
    for page in pretrained report; do
        [ -e "$demo/$page.html" ] || continue
        "$chromium" --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1180,1500 \
            --virtual-time-budget=4000 --screenshot="$PWD/docs/images/$page.png" \
            "file://$demo/$page.html" >/dev/null 2>&1
        echo "docs/images/$page.png"
    done
fi

python3 - "$demo" "$readme" <<'END'
import json
import re
import sys
from pathlib import Path

demo, readme = Path(sys.argv[1]), Path(sys.argv[2])
campaign = demo / "campaign"
read = lambda path: json.loads(path.read_text())
truth, audit = read(campaign / "truth.json"), read(campaign / "audit.json")
roads = {arm["arm"]: arm["mean"]["trajectory_mass"] for arm in audit["arms"]}


def seen(run):
    """Scenes behind the chosen checkpoint of a run on fresh scenes."""
    best = read(run / "result.json")["best_epoch"]
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    step = next(row["step"] for row in rows if row["epoch"] == best)
    return step * read(run / "config.resolved.json")["train"]["batch"]


def entry(end):
    return next((arm for arm in truth["arms"] if arm["name"].endswith(end)), None)


def line(title, arm, scenes=None, road=None):
    cells = [title, f"{scenes:,}" if scenes else "", f"{arm['realized_es']['mean']:.2f}",
             f"{arm['discrepancy']['mean']:.2f}", f"{100 * arm['recall_mass']:.0f} %",
             f"{100 * road:.1f} %" if road is not None else ""]
    return "| " + " | ".join(cells) + " |"


lines = [f"| {truth['scenes']:,} held-out scenes | scenes seen | trajectory ES, m | discrepancy, m | "
         "true modes found | on the road |", "|---|---|---|---|---|---|"]
pretrained = entry("builtin")
if pretrained:
    page = (demo / "report.html").read_text()
    found = re.search(r'pretrained</span></th><td class="n">([\d,]+)</td>', page)
    scenes = int(found.group(1).replace(",", "")) if found else None
    lines.append(line("pretrained model", pretrained, scenes, roads.get("builtin")))
titles = {"fullset": "full-set", "specialization": "specialization", "point": "point, K = 1"}
seconds = 0
for arm, title in titles.items():
    run = campaign / "runs" / arm / "seed-0"
    lines.append(line(title, entry(f"runs/{arm}/seed-0/ckpt/best"), seen(run), roads[arm]))
    seconds += read(run / "result.json")["wall_s"]
lines.append(line("six true modes", entry("true-modes")))
manifest = read(campaign / "runs" / "fullset" / "seed-0" / "manifest.json")
lines += ["", f"Training the three arms took {int(seconds // 60)} min {int(seconds % 60)} s with "
          f"{manifest['threads']} thread{'s' if manifest['threads'] > 1 else ''} ({manifest['isa']})."]

image = "docs/images/pretrained.png"
if Path(image).exists():
    lines += ["", f"![Forecasts of the pretrained model next to the true distribution]({image})"]

text = readme.read_text()
begin, end = "<!-- demo table -->\n", "<!-- /demo table -->"
if begin not in text or end not in text:
    sys.exit(f"{readme}: the lines <!-- demo table --> and <!-- /demo table --> are missing")
before, rest = text.split(begin, 1)
readme.write_text(before + begin + "\n".join(lines) + "\n" + end + rest.split(end, 1)[1])
print(f"{readme}: {len(lines)} lines of numbers")
END
