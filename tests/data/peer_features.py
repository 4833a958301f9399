"""Compares the features of the C library with scripts/reference/preprocess.py on the same files.

  TEST_GOLDEN=path/of/test_data_golden python3 tests/data/peer_features.py

The scenarios are invented and written by pyarrow and json in many layouts: unordered, repeated and missing
rows, equal tracks and lanes, boundaries with one point or zero length, few and many of each object. If
BJ_AV2_DATA is a folder of real scenarios, they are compared, too. Exit code 0 done, 1 failed, 77 skipped.
"""
import json
import os
import subprocess
import sys
from pathlib import Path

try:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

ROOT = Path(os.environ.get("BJ_ROOT") or Path(__file__).resolve().parents[2])
TOOL = os.environ.get("TEST_GOLDEN") or os.path.join(os.environ["BJ_BUILD"], "tests",
                                                     "test_data_golden")
sys.path.insert(0, str(ROOT / "scripts" / "reference"))
from preprocess import Scene, preprocess  # noqa: E402

SCENES, TOLERANCE = 60, 1e-5
TYPES = ("vehicle", "bus", "pedestrian", "cyclist", "motorcyclist", "static", "unknown")
LAYOUTS = (dict(), dict(compression="zstd"), dict(use_dictionary=False, compression="none"),
           dict(data_page_version="2.0"), dict(row_group_size=64), dict(compression="gzip"))


# --------------------------------------------------------------------------------------- generation

def made_up_tracks(random: np.random.Generator, name: str) -> pa.Table:
    steps = 110 if random.random() < 0.8 else 50
    grid = random.random() < 0.5                        # a coarse grid gives equal distances
    rows = []
    tracks = [f"{number}" for number in random.permutation(random.integers(1, 40))]
    for track in tracks:
        present = np.flatnonzero(random.random(steps) < random.uniform(0.1, 1.1))
        if track == tracks[0] or random.random() < 0.8:
            present = np.union1d(present, [49])
        kind = TYPES[random.integers(len(TYPES))]
        start, speed = random.uniform(-80, 80, 2), random.uniform(-10, 10, 2)
        for step in present:
            for _ in range(1 + (random.random() < 0.02)):
                place = start + 0.1 * step * speed + random.normal(0, 0.1, 2)
                place = np.round(place) if grid else place
                rows.append((track, kind, int(step), 4000 + place[0], -900 + place[1],
                             random.uniform(-3.2, 3.2), *(speed + random.normal(0, 1, 2))))
    if random.random() < 0.5:
        rows = [rows[i] for i in random.permutation(len(rows))]
    columns = list(zip(*rows))
    names = ["track_id", "object_type", "timestep", "position_x", "position_y", "heading",
             "velocity_x", "velocity_y"]
    table = dict(zip(names, columns))
    table.update(observed=[step < 50 for step in columns[2]], scenario_id=[name] * len(rows),
                 city=["town"] * len(rows), focal_track_id=[tracks[0]] * len(rows))
    order = random.permutation(list(table))
    return pa.table({key: table[key] for key in order})


def made_up_line(random: np.random.Generator, grid: bool) -> list:
    count = random.choice([1, 2, 3, 10, 30])
    place = 4000 + 1j * -900 + random.uniform(-90, 90) + 1j * random.uniform(-90, 90)
    steps = random.normal(0, 3, count) + 1j * random.normal(0, 3, count)
    steps[random.random(count) < 0.2] = 0               # repeated points, lines of zero length
    line = place + np.cumsum(steps)
    line = np.round(line) if grid else np.round(line, 2)
    return [dict(x=float(p.real), y=float(p.imag), z=1.0) for p in line]


def made_up_map(random: np.random.Generator) -> dict:
    grid = random.random() < 0.5
    lanes, crossings = {}, {}
    for number in random.permutation(random.integers(0, 90)):
        lanes[str(number)] = dict(
            id=int(number), is_intersection=bool(random.random() < 0.5), successors=[],
            centerline=made_up_line(random, grid), left_lane_boundary=made_up_line(random, grid),
            right_lane_boundary=made_up_line(random, grid))
        if lanes and random.random() < 0.2:             # a duplicate with another id
            twin = dict(lanes[random.choice(list(lanes))], id=int(1000 + number))
            lanes[str(twin["id"])] = twin
    for number in range(random.integers(0, 10)):
        edge = (random.choice(list(lanes.values()))["left_lane_boundary"]
                if lanes and random.random() < 0.5 else made_up_line(random, grid))
        crossings[str(number)] = dict(id=number, edge1=edge, edge2=edge)
    town = dict(drivable_areas={}, lane_segments=lanes)
    if crossings or random.random() < 0.5:
        town["pedestrian_crossings"] = crossings
    return town


def make_up(number: int) -> Path:
    random = np.random.default_rng(number)
    name = f"scene-{number}"
    folder = Path("scenes") / name
    folder.mkdir(parents=True)
    pq.write_table(made_up_tracks(random, name), folder / f"scenario_{name}.parquet",
                   **LAYOUTS[number % len(LAYOUTS)])
    with open(folder / f"log_map_archive_{name}.json", "w") as file:
        json.dump(made_up_map(random), file, indent=(None, 1)[number % 3 == 0])
    return folder


# --------------------------------------------------------------------------------------- comparing

def split(values: np.ndarray) -> dict:
    """Returns the arrays that `dump` wrote, in their order."""
    shapes = dict(origin=(2,), heading=(), counts=(4,), focal=(50, 7), future=(60, 2),
                  neighbors=(16, 50, 7), polylines=(48, 10, 6), ids=(48,))
    parts, at = {}, 0
    for key, shape in shapes.items():
        size = int(np.prod(shape))
        parts[key] = values[at:at + size].reshape(shape)
        at += size
    if at != len(values):
        raise ValueError(f"{len(values)} numbers, expected {at}")
    return parts


def differences(ours: dict, scene: Scene) -> list[str]:
    """Returns the names of the arrays that differ."""
    def padded(array: np.ndarray, count: int, fill: float = 0.0) -> np.ndarray:
        out = np.full((count,) + array.shape[1:], fill)
        out[:len(array)] = array
        return out

    expected = dict(
        origin=np.array([scene.origin.real, scene.origin.imag]), heading=np.array(scene.heading),
        counts=np.array([len(scene.neighbors), len(scene.polylines), scene.neighbors_available,
                         scene.polylines_available], float),
        focal=scene.focal, future=scene.future, neighbors=padded(scene.neighbors, 16),
        polylines=padded(scene.polylines, 48),
        ids=padded(np.array(scene.polyline_ids, float), 48, -1.0))
    exact = ("origin", "heading", "counts", "ids")
    return [key for key, want in expected.items()
            if not np.all(np.abs(ours[key] - want)
                          <= (0 if key in exact else TOLERANCE * np.maximum(1, np.abs(want))))]


def main() -> int:
    folders = [make_up(number) for number in range(SCENES)]
    data = os.environ.get("BJ_AV2_DATA")
    if data:
        folders += sorted(path.parent for path in Path(data).glob("av2*/*/scenario_*.parquet"))
    else:
        print("real scenarios skipped: set BJ_AV2_DATA")
    out = Path("arrays")
    out.mkdir()
    subprocess.run([TOOL, "dump", str(out), *map(str, folders)], check=True)
    failed, cut, tied = 0, 0, 0
    for folder in folders:
        scene = preprocess(folder)
        wrong = differences(split(np.fromfile(out / f"{scene.scenario_id}.bin")), scene)
        if wrong:
            print(f"FAILED: {folder}: {', '.join(wrong)}")
            failed += 1
        cut += scene.neighbors_available > 16 and scene.polylines_available > 48
        tied += len({tuple(line[0, :2]) for line in scene.polylines}) < len(scene.polylines)
    # Check that the comparison can fail and that the scenes exercise the rules.
    scene = preprocess(folders[0])
    scene.focal = scene.focal + 1e-4
    if differences(split(np.fromfile(out / f"{scene.scenario_id}.bin")), scene) != ["focal"]:
        print("FAILED: a planted difference was not found")
        failed += 1
    if cut < 5 or tied < 5:
        print(f"FAILED: only {cut} scenes are cut to the nearest and {tied} have ties")
        failed += 1
    print(f"features: {len(folders)} scenes compared, {failed} failures")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
