#!/usr/bin/env python3
"""Measures the time from the files of a motion-forecasting scenario to its arrays, on one core.

    official av2        load_argoverse_scenario_parquet + ArgoverseStaticMap.from_json: objects
                        only, without any of the arrays
    pyarrow + NumPy     scripts/reference/preprocess.py: all arrays
    bjepa, arrays       all arrays in C (tests/data/test_golden.c time)
    bjepa data prep     all arrays with --jobs 1, written to a cache on disk; includes the start of the
                        program, so small sets look worse than large ones

All programs run on the same core, with the files in the page cache. The processor time is measured,
because other work on that core does not increase it. Rounds alternate, so that the remaining noise
affects all programs. A result is the median over rounds of the mean milliseconds per scene, and the
best round. The arrays are compared before the measurement. Programs that are not installed are left out.

Exit codes, which do not depend on timings: 0 success, 1 different arrays or a program failed, 2 usage
error.
"""
from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import Callable

ROOT = Path(__file__).resolve().parents[1]
OFFICIAL, PLAIN, OURS, PREP = "official av2", "pyarrow + NumPy", "bjepa, arrays", "bjepa data prep"
INNER = 5              # passes of the C program per round, because one is too short to measure
AGREEMENT = 1e-5


def find_scenes(roots: list[Path]) -> list[Path]:
    return sorted({path.parent for root in roots for path in root.rglob("scenario_*.parquet")})


def passes(work: Callable[[Path], object], scenes: list[Path]) -> Callable[[], float]:
    """Returns a function that processes all scenes and returns the mean milliseconds."""
    def run() -> float:
        begin = time.process_time()
        for scene in scenes:
            work(scene)
        return 1e3 * (time.process_time() - begin) / len(scenes)
    return run


def official() -> Callable[[Path], object]:
    from av2.datasets.motion_forecasting import scenario_serialization
    from av2.map.map_api import ArgoverseStaticMap

    def load(folder: Path) -> object:
        scenario, = folder.glob("scenario_*.parquet")
        archive, = folder.glob("log_map_archive_*.json")
        return (scenario_serialization.load_argoverse_scenario_parquet(scenario),
                ArgoverseStaticMap.from_json(archive))
    return load


def plain() -> Callable[[Path], object]:
    sys.path.insert(0, str(ROOT / "scripts" / "reference"))
    import preprocess
    return preprocess.preprocess


def call(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command[0]} {command[1]} exited {done.returncode}: "
                           f"{done.stderr.strip()}")
    return done.stdout


def ours(tool: str, scenes: list[Path], parts: list[dict]) -> Callable[[], float]:
    def run() -> float:
        report = json.loads(call([tool, "time", str(INNER), *map(str, scenes)]))
        parts.append(report)
        return report["total_ms"]["mean"]
    return run


def children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def prep(bjepa: str, scenes: list[Path], roots: list[Path]) -> Callable[[], float]:
    def run() -> float:
        with tempfile.TemporaryDirectory() as folder:
            begin = children_seconds()
            call([bjepa, "data", "prep", "--av2", *map(str, roots), "--out",
                  os.path.join(folder, "cache"), "--jobs", "1"])
            return 1e3 * (children_seconds() - begin) / len(scenes)
    return run


def disagreement(tool: str, reference: Callable[[Path], object], scenes: list[Path]) -> list[str]:
    """Returns the scenes whose focal, neighbor or polyline arrays differ between C and Python."""
    import numpy

    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        call([tool, "dump", folder, *map(str, scenes)])
        for path in scenes:
            scene = reference(path)
            values = numpy.fromfile(os.path.join(folder, f"{scene.scenario_id}.bin"))[7:]
            want = numpy.concatenate([
                scene.focal.ravel(), scene.future.ravel(), scene.neighbors.ravel(),
                numpy.zeros((16 - len(scene.neighbors)) * 350), scene.polylines.ravel(),
                numpy.zeros((48 - len(scene.polylines)) * 60)])
            gap = numpy.abs(values[:len(want)] - want) / numpy.maximum(1, numpy.abs(want))
            if not gap.max() <= AGREEMENT:
                wrong.append(scene.scenario_id)
    return wrong


def contenders(args: argparse.Namespace, scenes: list[Path], parts: list[dict]
               ) -> dict[str, Callable[[], float]]:
    found: dict[str, Callable[[], float]] = {}
    for name, build in ((OFFICIAL, official), (PLAIN, plain)):
        try:
            found[name] = passes(build(), scenes)
        except ImportError as missing:
            print(f"{name}: left out, {missing}", file=sys.stderr)
    found[OURS] = ours(args.tool, scenes, parts)
    if args.bjepa != "none":
        found[PREP] = prep(args.bjepa, scenes, args.av2)
    return found


def warm(found: dict[str, Callable[[], float]]) -> None:
    """Runs each program once and returns those that work. `data prep` may reject duplicates in the folders."""
    for name, run in list(found.items()):
        try:
            run()
        except RuntimeError as error:
            if name != PREP:
                raise
            print(f"{name}: left out, {error}", file=sys.stderr)
            del found[name]


def processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines
                        if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown"


def versions() -> dict[str, str]:
    found = {}
    for package in ("av2", "pyarrow", "pandas", "numpy"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def parse() -> argparse.Namespace:
    build = ROOT / "build" / "release"
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--av2", type=Path, nargs="+", required=True, metavar="DIR",
                        help="folders that hold scenario folders, at any depth")
    parser.add_argument("--tool", default=str(build / "tests" / "test_data_golden"),
                        metavar="PATH", help="the C program that times itself")
    parser.add_argument("--bjepa", default=str(build / "bjepa"), metavar="PATH",
                        help="binary for `data prep`; 'none' leaves it out")
    parser.add_argument("--rounds", type=int, default=5, help="alternating rounds (default 5)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers there too")
    args = parser.parse_args()
    if not os.access(args.tool, os.X_OK):
        parser.error(f"{args.tool} is not an executable: build the tests first")
    if args.rounds < 1:
        parser.error("--rounds must be at least 1")
    return args


def main() -> int:
    args = parse()
    scenes = find_scenes(args.av2)
    if not scenes:
        print(f"no scenario_*.parquet below {', '.join(map(str, args.av2))}", file=sys.stderr)
        return 2
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})     # and for all child processes
    facts: dict[str, object] = dict(cpu=processor(), scenes=len(scenes), rounds=args.rounds,
                                    versions=versions())
    print(f"{facts['cpu']}, one core; {len(scenes)} scenes, {args.rounds} rounds; "
          + ", ".join(f"{name} {version}" for name, version in versions().items()))
    parts: list[dict] = []
    try:
        found = contenders(args, scenes, parts)
        if PLAIN in found:
            wrong = disagreement(args.tool, plain(), scenes)
            if wrong:
                print(f"different arrays: {', '.join(wrong)}", file=sys.stderr)
                return 1
        warm(found)
        parts.clear()
        times: dict[str, list[float]] = {name: [] for name in found}
        for number in range(args.rounds):
            for name, run in found.items():
                times[name].append(run())
            print(f"round {number + 1} of {args.rounds} done", file=sys.stderr)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1

    median = {name: statistics.median(values) for name, values in times.items()}
    best = {name: min(values) for name, values in times.items()}
    print(f"\n{'CPU ms a scene':<20}{'median':>10}{'best':>10}{'x official':>12}{'x NumPy':>10}")
    for name in found:
        cells = [f"{median[peer] / median[name]:.1f}" if peer in median else "-"
                 for peer in (OFFICIAL, PLAIN)]
        print(f"{name:<20}{median[name]:>10.3f}{best[name]:>10.3f}{cells[0]:>12}{cells[1]:>10}")
    share = {part: statistics.median(report[f"{part}_ms"]["mean"] for report in parts)
             for part in ("scenario", "map", "features")}
    print("of which " + ", ".join(f"{part} {value:.3f}" for part, value in share.items()))
    if OFFICIAL in found:
        print("ratios of the best rounds: " + ", ".join(
            f"{name} {best[OFFICIAL] / best[name]:.1f} x" for name in (OURS, PREP) if name in best))
    if args.json:
        facts.update(ms=times, median=median, best=best, parts=share)
        args.json.write_text(json.dumps(facts, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
