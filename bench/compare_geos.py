#!/usr/bin/env python3
"""Compares the time of our point-in-area test with GEOS (through shapely) on one core.

    ours               bj_drivable: rows of edges; exact tolerance
    ours, all metrics  bj_drivable inside bj_audit_measure, with all seven metrics
    GEOS dwithin       prepared union, distance to every point at most the tolerance; exact
    GEOS buffer        union grown by the tolerance (arcs become chords) and prepared, then contains

A scene is a map with six candidates of 60 points. A map is prepared once per scene, because in an audit
every real scene has its own map. The points of GEOS are created before the measurement. The results
are compared first: dwithin must agree with ours except for points within 1e-9 m of the tolerance.
Processor time is measured, rounds alternate, and a result is the median over rounds.

--av2 DIR uses official map files. Without it, towns of the simulated world are generated.
Exit codes, which do not depend on timings: 0 success, 1 different results, 2 usage error.
"""
from __future__ import annotations

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import shapely

ROOT = Path(__file__).resolve().parents[1]
K, F, TOLERANCE, TIE = 6, 60, 0.1, 1e-9


class Ring(ctypes.Structure):
    _fields_ = [("points", ctypes.c_void_p), ("count", ctypes.c_int)]


class Scene:
    """A map and candidates, in the shapes that each program needs."""

    def __init__(self, archive: Path, rng: np.random.Generator):
        areas = json.loads(archive.read_text())["drivable_areas"].values()
        self.rings = [np.array([(p["x"], p["y"]) for p in a["area_boundary"]]) for a in areas]
        self.table = (Ring * len(self.rings))(
            *[Ring(r.ctypes.data, len(r)) for r in self.rings])
        corners = np.concatenate(self.rings)
        middle = corners[np.argmin(np.linalg.norm(corners - corners.mean(0), axis=1))]
        angle = rng.uniform(0, 2 * np.pi) + np.outer(rng.normal(0, 0.1, K), np.arange(F) * 0.1)
        speed = rng.uniform(2, 15, (K, 1, 1)) * 0.1
        steps = speed * np.stack([np.cos(angle), np.sin(angle)], -1)
        self.y = np.ascontiguousarray(middle + np.cumsum(steps, 1))
        self.p = np.full(K, 1 / K)
        self.points = shapely.points(self.y.reshape(-1, 2))
        self.inside = np.zeros(K * F, np.uint8)


class Ours:
    def __init__(self, library: str):
        self.c = ctypes.CDLL(library)
        self.handle = ctypes.c_void_p()
        self.out = ctypes.create_string_buffer(1 << 14)  # a bj_audit_scene is smaller
        self.c.bj_drivable_create(ctypes.byref(self.handle), None)

    def prepare(self, s: Scene) -> None:
        self.c.bj_drivable_set_rings(self.handle, s.table, len(s.rings),
                                     ctypes.c_double(TOLERANCE), None)

    def points(self, s: Scene) -> np.ndarray:
        self.c.bj_drivable_contains(ctypes.c_void_p(s.inside.ctypes.data), self.handle,
                                    ctypes.c_void_p(s.y.ctypes.data), ctypes.c_int64(K * F))
        return s.inside

    def metrics(self, s: Scene) -> None:
        self.c.bj_audit_measure(self.out, self.handle, K, F, ctypes.c_void_p(s.p.ctypes.data),
                                ctypes.c_void_p(s.y.ctypes.data))


def union(s: Scene):
    return shapely.union_all([shapely.make_valid(shapely.Polygon(r)) for r in s.rings])


def prepared(s: Scene):
    shape = union(s)
    shapely.prepare(shape)
    return shape


def grown(s: Scene):
    shape = shapely.buffer(union(s), TOLERANCE)
    shapely.prepare(shape)
    return shape


def contenders(ours: Ours) -> dict:
    """Returns {name: (prepare, answer)}. The result of prepare(map) is passed to answer."""
    return {
        "ours": (ours.prepare, lambda s, _: ours.points(s)),
        "ours, all metrics": (ours.prepare, lambda s, _: ours.metrics(s)),
        "GEOS dwithin": (prepared, lambda s, shape: shapely.dwithin(shape, s.points, TOLERANCE)),
        "GEOS buffer": (grown, lambda s, shape: shapely.contains_xy(shape, s.y.reshape(-1, 2))),
    }


def disagreements(ours: Ours, scenes: list[Scene]) -> int:
    wrong = inside = 0
    for s in scenes:
        ours.prepare(s)
        answer = ours.points(s).astype(bool)
        distance = shapely.distance(union(s), s.points)
        wrong += int(((answer != (distance <= TOLERANCE))
                      & (np.abs(distance - TOLERANCE) >= TIE)).sum())
        inside += int(answer.sum())
    print(f"{inside} of {len(scenes) * K * F} points inside", file=sys.stderr)
    return wrong


def time_one(prepare, answer, scenes: list[Scene]) -> tuple[float, float]:
    """Returns the microseconds per scene for preparing the map and for testing the points."""
    first = second = 0.0
    for s in scenes:
        a = time.process_time()
        shape = prepare(s)
        b = time.process_time()
        answer(s, shape)
        first, second = first + b - a, second + time.process_time() - b
    return 1e6 * first / len(scenes), 1e6 * second / len(scenes)


def parse() -> argparse.Namespace:
    build = ROOT / "build" / "release"
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--av2", type=Path, metavar="DIR", help="folder with official map files")
    parser.add_argument("--library", default=str(build / "libbranchjepa.so"), metavar="PATH")
    parser.add_argument("--bjepa", default=str(build / "bjepa"), metavar="PATH",
                        help="makes the simulated maps")
    parser.add_argument("--scenes", type=int, default=60, help="simulated maps (default 60)")
    parser.add_argument("--rounds", type=int, default=5, help="alternating rounds (default 5)")
    return parser.parse_args()


def archives(args: argparse.Namespace, folder: str) -> list[Path]:
    if args.av2:
        return sorted(args.av2.rglob("log_map_archive_*.json"))
    subprocess.run([args.bjepa, "simulate", "--out", folder, "--scenes", str(args.scenes),
                    "--seed", "1", "-q"], check=True, stdout=subprocess.DEVNULL)
    return sorted(Path(folder).rglob("log_map_archive_*.json"))


def main() -> int:
    args = parse()
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        scenes = [Scene(path, rng) for path in archives(args, folder)]
    if not scenes:
        print("no map files", file=sys.stderr)
        return 2
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    ours = Ours(args.library)
    corners = statistics.mean(sum(map(len, s.rings)) for s in scenes)
    print(f"{len(scenes)} maps of {corners:.0f} points on average, {K} candidates of {F} points; "
          f"shapely {shapely.__version__}, GEOS {shapely.geos_version_string}")
    wrong = disagreements(ours, scenes)
    if wrong:
        print(f"{wrong} points differ from GEOS", file=sys.stderr)
        return 1
    found = contenders(ours)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in found}
    for number in range(args.rounds + 1):  # the first round is a warm-up
        for name, (prepare, answer) in found.items():
            result = time_one(prepare, answer, scenes)
            if number:
                times[name].append(result)
    print(f"\n{'microseconds a scene':<22}{'map':>9}{'points':>9}{'candidates a second':>22}")
    for name, rounds in times.items():
        one, two = (statistics.median(r[i] for r in rounds) for i in (0, 1))
        print(f"{name:<22}{one:>9.1f}{two:>9.1f}{K * 1e6 / (one + two):>22,.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
