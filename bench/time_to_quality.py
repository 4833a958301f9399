#!/usr/bin/env python3
"""Prints the minutes until a development score is reached, for our engine and PyTorch, recipes fast and paper.

    bench/time_to_quality.py --fast RUN... --paper RUN... [--targets 2.6,2.4,2.2] [--threads 2]

RUN is the folder of a training run, finished or not, with the same development scenes. The number of updates
comes from metrics.jsonl: the fewest updates of any given run of that recipe after which the
development trajectory Energy Score is at most the target. The time of an update is measured here, alternately
for bjepa and PyTorch (the faster of eager and compiled), at the batch size of each recipe. PyTorch runs the
same arithmetic, so it needs the same number of updates; its rows are that number times its step time.
The ratio therefore splits into recipe (updates) and engine (time per update).

Exit codes, which do not depend on timings: 0 success, 1 a run cannot be read or bjepa failed.
"""
from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import compare_torch

ROOT = Path(__file__).resolve().parents[1]


def read_run(folder: str) -> tuple[int, list[tuple[int, float]]]:
    """Returns the batch size, and (updates, development score) of every epoch."""
    path = Path(folder)
    settings = json.loads((path / "config.resolved.json").read_text())
    rows = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    return settings["train"]["batch"], [(row["step"], row["dev"]["traj_es"]) for row in rows]


def updates_to(runs: list[list[tuple[int, float]]], target: float) -> int | None:
    reached = [step for rows in runs for step, score in rows if score <= target]
    return min(reached, default=None)


def time_bjepa(bjepa: str, batch: int, threads: int) -> float:
    out = subprocess.run([bjepa, "bench", "--only", "train", "--batch", str(batch), "--threads",
                          str(threads), "--rounds", "5", "--json"], capture_output=True, text=True)
    if out.returncode:
        sys.exit(f"time_to_quality.py: bjepa bench failed: {out.stderr.strip()}")
    return json.loads(out.stdout)[f"train{batch}_ms"] / 1e3


def time_steps(step, count: int) -> float:
    seconds = []
    for _ in range(count):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def step_times(bjepa: str, batches: set[int], threads: int, rounds: int) -> dict:
    """Returns the median seconds of an update by (engine, batch), with PyTorch's faster configuration."""
    import torch

    sys.path.insert(0, str(ROOT / "scripts"))
    torch.set_num_threads(threads)
    peers = {}
    for batch in batches:
        for name, compiled in (("eager", False), ("compiled", True)):
            step = compare_torch.build_training(compiled, batch)
            try:
                step(), step()
            except Exception as error:  # without a compiler, only eager mode is available
                print(f"PyTorch {name}, batch {batch}: {str(error).splitlines()[0]}", file=sys.stderr)
                continue
            peers[name, batch] = step
    seconds: dict = {}
    for _ in range(rounds):
        for batch in batches:
            seconds.setdefault(("ours", batch), []).append(time_bjepa(bjepa, batch, threads))
            for (name, size), step in peers.items():
                if size == batch:
                    seconds.setdefault((name, batch), []).append(time_steps(step, 3))
    medians = {key: statistics.median(values) for key, values in seconds.items()}
    return {**{("ours", b): medians["ours", b] for b in batches},
            **{("PyTorch", b): min(medians[k] for k in medians if k[1] == b and k[0] != "ours")
               for b in batches}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fast", nargs="+", required=True, metavar="RUN")
    parser.add_argument("--paper", nargs="+", required=True, metavar="RUN")
    parser.add_argument("--targets", default="2.6,2.4,2.2", help="development scores, m")
    parser.add_argument("--bjepa", default=str(ROOT / "build/release/bjepa"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    recipes = {}
    for name in ("fast", "paper"):
        try:
            runs = [read_run(folder) for folder in getattr(args, name)]
        except (OSError, KeyError, ValueError) as error:
            print(f"time_to_quality.py: {name}: {error}", file=sys.stderr)
            return 1
        recipes[name] = (runs[0][0], [rows for _, rows in runs])
    batches = {batch for batch, _ in recipes.values()}
    seconds = step_times(args.bjepa, batches, args.threads, args.rounds)
    for (engine, batch), value in sorted(seconds.items()):
        print(f"{engine}, batch {batch}: {1e3 * value:.1f} ms an update, {batch / value:.0f} scenes/s")
    print("\n| development ES, m | recipe | updates | ours, min | PyTorch, min |"
          " PyTorch paper / this | of which recipe | of which engine |")
    print("|---|---|---|---|---|---|---|---|")
    for target in (float(text) for text in args.targets.split(",")):
        found = {name: updates_to(runs, target) for name, (_, runs) in recipes.items()}
        for name, (batch, _) in recipes.items():
            if found[name] is None:
                print(f"| {target:g} | {name} | not reached | | | | | |")
                continue
            ours, torch_time = (found[name] * seconds[e, batch] / 60 for e in ("ours", "PyTorch"))
            tail = "| | | |"
            if found["paper"] is not None:
                slow = found["paper"] * seconds["PyTorch", recipes["paper"][0]] / 60
                tail = f"| {slow / ours:.1f} | {slow / torch_time:.1f} | {torch_time / ours:.1f} |"
            print(f"| {target:g} | {name} | {found[name]} | {ours:.1f} | {torch_time:.1f} {tail}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
