#!/usr/bin/env python3
"""Prints the table of the standard benchmark as Markdown (docs/BENCHMARK.md).

  scripts/benchmark_table.py --data DIR [--split val|test] [NAME=FILE.parquet|NAME=RUN ...]

FILE.parquet is a submission. RUN is a checkpoint or run folder: `bjepa submit` predicts
DIR/SPLIT.bjc, which `bjepa benchmark make DIR --cache` writes. Entries with the same NAME are seeds of
one method, and their row has the mean and the sample standard deviation. Without an entry the table contains
only the baselines. Needs Python 3.8 and no packages.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

COLUMNS = [  # title, value of an arm, digits
    ("K", lambda a: a["atoms"], 0),
    ("discrepancy, m", lambda a: a["discrepancy"]["mean"], 3),
    ("expected ES, m", lambda a: a["expected_es"]["mean"], 3),
    ("realized ES, m", lambda a: a["realized_es"]["mean"], 3),
    ("mode recall", lambda a: a["recall"], 3),
    ("by mass", lambda a: a["recall_mass"], 3),
    ("mass error", lambda a: a["mass_error"], 3),
    ("Brier excess", lambda a: a["brier_excess"], 4),
    ("ECE", lambda a: a["calibration_error"], 4),
]
BASELINES = ["lane-following", "constant-velocity-6", "constant-velocity", "constant-turn-rate"]


def run(*arguments):
    done = subprocess.run(arguments, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(arguments[:3])} ...: exit code {done.returncode}")
    return done.stdout


def cell(values, digits):
    if values[0] is None:
        return "-"
    text = f"{statistics.mean(values):.{digits}f}"
    if digits and len(values) > 1:
        text += f" ± {statistics.stdev(values):.{digits}f}"
    return text


def print_row(name, arms):
    cells = [cell([value(a) for a in arms], digits) for _, value, digits in COLUMNS]
    print("| " + " | ".join([name, *cells]) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True, help="folder of 'bjepa benchmark make'")
    parser.add_argument("--split", choices=["val", "test"], default="val")
    parser.add_argument("--bjepa", default="build/release/bjepa")
    parser.add_argument("entries", nargs="*", metavar="NAME=PATH")
    options = parser.parse_args()
    stem = os.path.join(options.data, options.split)
    names, files = [], []
    with tempfile.TemporaryDirectory() as scratch:
        for number, entry in enumerate(options.entries):
            name, equals, path = entry.partition("=")
            if not equals:
                parser.error(f"found '{entry}', expected NAME=PATH")
            if not path.endswith(".parquet"):
                checkpoint, path = path, os.path.join(scratch, f"{number}.parquet")
                run(options.bjepa, "submit", checkpoint, stem + ".bjc", "--out", path)
            names.append(name)
            files.append(path)
        if not files:  # the command needs a file, and this one has its own row anyway
            files = [stem + "-constant-velocity.parquet"]
        arms = json.loads(run(options.bjepa, "benchmark", "score", *files, "--data", options.data,
                              "--split", options.split, "--json", "--quiet"))["arms"]
    rest = {arm["name"]: arm for arm in arms[len(files):]}
    rows = {}
    for name, arm in zip(names, arms):
        rows.setdefault(name, []).append(arm)
    print("| " + " | ".join(["forecast", *(title for title, _, _ in COLUMNS)]) + " |")
    print("|---" * (len(COLUMNS) + 1) + "|")
    floor = arms[0]["floor"]["mean"]
    print(f"| the law itself | - | 0 | {floor:.3f} | - | - | - | - | 0 | 0 |")
    print_row("means of the six heaviest true modes", [rest["true-modes"]])
    for name, seeds in rows.items():
        print_row(name if len(seeds) == 1 else f"{name} ({len(seeds)} seeds)", seeds)
    for name in BASELINES:
        if name in rest:
            print_row(name, [rest[name]])
    errors = max(arm["discrepancy"]["error"] for arm in arms)
    spread = max(arm["discrepancy_spread"] for arm in arms)
    modes = rest["true-modes"]
    print(f"\n{arms[0]['scenes']:,} scenes of split `{options.split}`. The standard error of the discrepancy "
          f"is at most {errors:.3f} m due to sampling, and\n{spread:.2f} m due to the choice of scenes, which "
          f"is the same for all rows. On {modes['best_scenes']} of the scenes, the best six atoms\nfound by a "
          f"direct search have a discrepancy of {modes['best']['mean']:.3f} m.")


if __name__ == "__main__":
    main()
