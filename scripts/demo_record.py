#!/usr/bin/env python3
"""Keeps the numbers of the README equal to those of `bjepa demo`.

    demo_record.py record DEMO RECORD    write the record of a finished demo folder as JSON
    demo_record.py table RECORD README   write the table of a record into a README
    demo_record.py check RECORD README   fail if the README's table differs from the record
    demo_record.py compare RECORD DEMO   fail if a demo's numbers differ from the record

A record contains the instruction set, the commit and one row per table line. The environment variable
BJ_COMMIT overrides the commit, which is the HEAD of the source tree by default. BJ_BUSY=1 leaves out the
training time, for a demo that ran on a busy machine. The README's table is between the lines
`<!-- demo table -->` and `<!-- /demo table -->`. `compare` compares the numbers as the table prints them,
but not the training time. Exit codes: 0 success, 1 a difference, 2 a usage error.
"""
from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

SCHEMA = "branchjepa.demo/1"
BEGIN, END = "<!-- demo table -->\n", "<!-- /demo table -->"
TITLES = {"fullset": "full-set", "specialization": "specialization", "point": "point, K = 1"}


def read(path: Path) -> dict:
    return json.loads(path.read_text())


def scenes_seen(run: Path) -> int:
    """Returns the number of scenes that trained the chosen checkpoint of a run on fresh scenes."""
    best = read(run / "result.json")["best_epoch"]
    epochs = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    step = next(epoch["step"] for epoch in epochs if epoch["epoch"] == best)
    return step * read(run / "config.resolved.json")["train"]["batch"]


def pretrained_scenes(demo: Path) -> int | None:
    """Returns the number of training scenes that the report states for the pretrained model."""
    page = (demo / "report.html").read_text()
    found = re.search(r'pretrained</span></th><td class="n">([\d,]+)</td>', page)
    return int(found.group(1).replace(",", "")) if found else None


def commit() -> str:
    if "BJ_COMMIT" in os.environ:
        return os.environ["BJ_COMMIT"]
    folder = Path(__file__).resolve().parent
    return subprocess.run(["git", "-C", folder, "rev-parse", "HEAD"], check=True,
                          capture_output=True, text=True).stdout.strip()


def make_record(demo: Path) -> dict:
    """Reads the record of a finished demo from the demo's files."""
    campaign = demo / "campaign"
    truth = {arm["name"]: arm for arm in read(campaign / "truth.json")["arms"]}
    roads = {arm["arm"]: arm["mean"]["trajectory_mass"]
             for arm in read(campaign / "audit.json")["arms"]}

    def row(title: str, ending: str, scenes: int | None, road: float | None) -> dict:
        arm = next(arm for name, arm in truth.items() if name.endswith(ending))
        return {"title": title, "scenes_seen": scenes,
                "trajectory_es": round(arm["realized_es"]["mean"], 6),
                "discrepancy": round(arm["discrepancy"]["mean"], 6),
                "recall_mass": round(arm["recall_mass"], 6),
                "on_road": None if road is None else round(road, 6)}

    rows, seconds = [], 0.0
    if any(name.endswith("builtin") for name in truth):
        rows.append(row("pretrained model", "builtin", pretrained_scenes(demo),
                        roads.get("builtin")))
    for arm, title in TITLES.items():
        run = campaign / "runs" / arm / "seed-0"
        rows.append(row(title, f"runs/{arm}/seed-0/ckpt/best", scenes_seen(run), roads[arm]))
        seconds += read(run / "result.json")["wall_s"]
    rows.append(row("six true modes", "true-modes", None, None))
    manifest = read(campaign / "runs" / "fullset" / "seed-0" / "manifest.json")
    return {"schema": SCHEMA, "isa": manifest["isa"], "commit": commit(),
            "threads": manifest["threads"],
            "training_seconds": None if os.environ.get("BJ_BUSY") else round(seconds),
            "held_out_scenes": read(campaign / "truth.json")["scenes"], "rows": rows}


def table_lines(record: dict) -> list[str]:
    """Returns the lines of the Markdown table of a record, without the training time."""
    lines = [f"| {record['held_out_scenes']:,} held-out scenes | scenes seen | trajectory ES, m | "
             "discrepancy, m | true modes found | on the road |", "|---|---|---|---|---|---|"]
    for row in record["rows"]:
        scenes, road = row["scenes_seen"], row["on_road"]
        cells = [row["title"], f"{scenes:,}" if scenes else "", f"{row['trajectory_es']:.2f}",
                 f"{row['discrepancy']:.2f}", f"{100 * row['recall_mass']:.0f} %",
                 "" if road is None else f"{100 * road:.1f} %"]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def block(record: dict) -> str:
    """Returns the text between the two marks of the README."""
    lines = table_lines(record)
    if record["training_seconds"] is None:
        lines += ["", f"The instruction set was {record['isa']}."]
    else:
        minutes, seconds = divmod(record["training_seconds"], 60)
        threads = record["threads"]
        lines += ["", f"Training the three arms took {minutes} min {seconds} s with {threads} "
                  f"thread{'s' if threads > 1 else ''} ({record['isa']})."]
    return "\n".join(lines) + "\n"


def split_readme(path: Path) -> tuple[str, str, str]:
    """Returns the text before, between and after the marks."""
    text = path.read_text()
    if BEGIN not in text or END not in text:
        sys.exit(f"{path}: the lines {BEGIN.strip()} and {END} are missing")
    before, rest = text.split(BEGIN, 1)
    inside, after = rest.split(END, 1)
    return before, inside, after


def report(title: str, found: list[str], expected: list[str]) -> int:
    """Prints the lines that differ. Returns 1 if there are any."""
    if found == expected:
        return 0
    print(f"{title}:")
    for line in sorted(set(found) ^ set(expected)):
        print(f"  {'found   ' if line in found else 'expected'}  {line}")
    return 1


def main(arguments: list[str]) -> int:
    if len(arguments) != 3 or arguments[0] not in ("record", "table", "check", "compare"):
        print(__doc__, file=sys.stderr)
        return 2
    verb, first, second = arguments[0], Path(arguments[1]), Path(arguments[2])
    if verb == "record":
        second.write_text(json.dumps(make_record(first), indent=2) + "\n")
        return 0
    record = read(first)
    if verb == "compare":
        return report(f"{second}: the demo differs from {first}", table_lines(make_record(second)),
                      table_lines(record))
    before, inside, after = split_readme(second)
    if verb == "check":
        return report(f"{second}: the table differs from {first}; scripts/readme_numbers.sh writes it",
                      inside.splitlines(), block(record).splitlines())
    second.write_text(before + BEGIN + block(record) + END + after)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
