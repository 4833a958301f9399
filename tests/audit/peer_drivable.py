"""Compares drivable areas and map audits with GEOS (shapely) and a NumPy implementation.

  BJEPA=path/of/bjepa BJ_BUILD=build/release python3 tests/audit/peer_drivable.py

1. For random polygons, star-shaped, on a lattice or with touching edges, the result equals GEOS's distance
   to the union, except for points within 1e-9 m of the tolerance.
2. For a submission of random candidates on simulated maps, all seven metrics of every scene from
   `bjepa audit --submission` equal NumPy with containment by GEOS. With BJ_AV2_DATA, real maps are used, too.
3. Scenario files without their future rows, and a cache made of them, give the same output bytes.
4. The audit of a model's submission with scenario files equals the audit of the model with a cache.
Exit codes: 0 success, 1 failure, 77 skipped because a package is not installed.
"""
import csv
import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

try:
    import numpy as np
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    import shapely
    from av2.datasets.motion_forecasting.eval.submission import ChallengeSubmission
except ImportError as missing:
    print(f"skipped: {missing.name} is not installed")
    sys.exit(77)

BJEPA, BUILD = os.environ["BJEPA"], Path(os.environ["BJ_BUILD"])
MODEL = os.environ.get("TEST_SUBMIT") or str(BUILD / "tests" / "test_eval_submit")
TOLERANCE, F, TIE = 0.1, 60, 1e-9
METRICS = ("point_mass", "trajectory_mass", "unique_support", "entropy_support",
           "mass_weighted_support", "trajectory_diversity", "endpoint_diversity")


def check(condition, what):
    if not condition:
        print("FAILED:", what)
        sys.exit(1)


def run(*arguments, code=0):
    done = subprocess.run([BJEPA, *map(str, arguments)], capture_output=True, text=True)
    check(done.returncode == code, f"bjepa {arguments}: exit {done.returncode}, expected {code}: "
                                   f"{done.stderr}{done.stdout[:300]}")
    return done.stdout


# ------------------------------------------------------------------------------------ geometry

class Ring(ctypes.Structure):
    _fields_ = [("points", ctypes.c_void_p), ("count", ctypes.c_int)]


class Drivable:
    """Calls bj_drivable of the shared library."""

    def __init__(self):
        self.library = ctypes.CDLL(str(BUILD / "libbranchjepa.so"))
        self.library.bj_drivable_contains.restype = ctypes.c_int64
        self.handle = ctypes.c_void_p()
        check(self.library.bj_drivable_create(ctypes.byref(self.handle), None) == 0, "create")

    def set(self, rings, tolerance):
        rings = [np.ascontiguousarray(ring, dtype=np.float64) for ring in rings]
        table = (Ring * len(rings))(*[Ring(r.ctypes.data, len(r)) for r in rings])
        check(self.library.bj_drivable_set_rings(self.handle, table, len(rings),
                                                 ctypes.c_double(tolerance), None) == 0, "set")

    def contains(self, points):
        points = np.ascontiguousarray(points, dtype=np.float64)
        inside = np.zeros(len(points), np.uint8)
        count = self.library.bj_drivable_contains(
            inside.ctypes.data_as(ctypes.c_void_p), self.handle,
            points.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(len(points)))
        check(count == inside.sum(), "count of points inside")
        return inside.astype(bool)


def star(rng, center, size):
    """Returns a simple polygon around a center, from nearly round to very spiky."""
    n = int(rng.integers(3, 40))
    angle = np.sort(rng.uniform(0, 2 * np.pi, n))
    radius = size * rng.uniform(rng.choice([0.1, 0.9]), 1, n)
    ring = center + radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
    return ring[::rng.choice([-1, 1])]


def tiles(rng, center):
    """Returns squares and triangles of a lattice that touch at edges and corners."""
    rings = []
    for _ in range(int(rng.integers(1, 8))):
        corner = np.floor(center) + rng.integers(0, 4, 2) * 5.0
        square = corner + np.array([[0, 0], [5, 0], [5, 5], [0, 5]])
        rings.append(square if rng.random() < 0.6 else square[:3])
    return rings


def union_of(rings):
    return shapely.union_all([shapely.make_valid(shapely.Polygon(ring)) for ring in rings])


def test_points(rng, rings):
    """Returns points nearby, at corners, on edges, and at the tolerance from edges."""
    corners = np.concatenate(rings)
    ends = np.concatenate([np.roll(ring, -1, 0) for ring in rings])
    low, high = corners.min(0) - 3, corners.max(0) + 3
    pick = rng.integers(0, len(corners), 60)
    t = rng.choice([0, 0.25, 0.5, rng.random()], 60)[:, None]
    edge = corners[pick] + t * (ends[pick] - corners[pick])
    along = ends[pick] - corners[pick]
    length = np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-12)
    normal = np.stack([-along[:, 1], along[:, 0]], 1) / length
    offset = TOLERANCE * rng.choice([-1.01, -1, -0.99, 0.99, 1, 1.01], 60)[:, None]
    return np.concatenate([rng.uniform(low, high, (120, 2)), corners, edge, edge + offset * normal])


def compare_geometry(rng, drivable):
    points = ties = inside = 0
    for trial in range(400):
        center = rng.uniform(-6000, 6000, 2)
        rings = tiles(rng, center) if trial % 3 == 0 else [
            star(rng, center + rng.normal(0, 10, 2), rng.choice([1, 8, 30]))
            for _ in range(int(rng.integers(1, 6)))]
        queries = test_points(rng, rings)
        drivable.set(rings, TOLERANCE)
        ours = drivable.contains(queries)
        distance = shapely.distance(union_of(rings), shapely.points(queries))
        tie = np.abs(distance - TOLERANCE) < TIE
        wrong = (ours != (distance <= TOLERANCE)) & ~tie
        check(not wrong.any(), f"trial {trial}: {queries[wrong][:3]} at {distance[wrong][:3]}")
        points, ties, inside = points + len(queries), ties + tie.sum(), inside + ours.sum()
    check(points / 5 < inside < points * 4 / 5, f"{inside} of {points} inside: a lopsided test")
    return f"{points} points equal to GEOS ({ties} within {TIE} m of the tolerance not compared)"


# --------------------------------------------------------------------------------------- audit

def plain_audit(rings, p, y):
    """Returns the seven metrics of one scene with candidates y (K,F,2)."""
    union = union_of(rings)
    inside = shapely.distance(union, shapely.points(y.reshape(-1, 2))).reshape(y.shape[:2])
    count = (inside <= TOLERANCE).sum(1)
    feasible = count >= 57
    gap = np.linalg.norm(y[:, None] - y[None], axis=-1)
    rms, end = np.sqrt((gap ** 2).mean(-1)), gap[..., -1]
    joined = (rms <= 0.5) & feasible[:, None] & feasible[None]
    for _ in p:
        joined = joined | (joined.astype(int) @ joined.astype(int) > 0)
    groups = {tuple(np.flatnonzero(joined[k])) for k in np.flatnonzero(feasible)}
    mass = np.array([p[list(group)].sum() for group in groups])
    total = p[feasible].sum()
    q = mass[mass > 0] / total if total > 0 else np.zeros(0)
    entropy = np.exp(-(q * np.log(q)).sum()) if len(q) else 0.0
    w = p * feasible
    return dict(zip(METRICS, (
        (p * count / F).sum(), total, (mass >= 0.01).sum(), entropy, entropy * total,
        w @ rms @ w, w @ end @ w)))


def scenario(folder):
    """Returns focal track id, type, position and heading at the last observed step, and drivable areas."""
    path, = folder.glob("scenario_*.parquet")
    table = pq.read_table(path).to_pandas()
    focal = table[table.track_id == table.focal_track_id]
    last = focal[focal.timestep == 49].iloc[-1]
    archive, = folder.glob("log_map_archive_*.json")
    areas = json.loads(archive.read_text())["drivable_areas"].values()
    rings = [np.array([(p["x"], p["y"]) for p in a["area_boundary"]]) for a in areas]
    speed = max(float(np.hypot(last.velocity_x, last.velocity_y)), 1.0)
    return (last.track_id, focal.object_type.iloc[0],
            np.array([last.position_x, last.position_y]), last.heading, speed, rings)


def candidates(rng, origin, heading, speed):
    """Returns arcs of random curvature, some nearly equal, with random weights."""
    K = int(rng.integers(1, 7))
    turn, factor = rng.normal(0, 0.15, K), rng.uniform(0.2, 1.3, K)
    if K > 2:
        turn[1], factor[1] = turn[0] + rng.normal(0, 0.003), factor[0]
    t = 0.1 * np.arange(1, F + 1)
    angle = heading + turn[:, None] * t
    step = 0.1 * speed * factor[:, None, None] * np.stack([np.cos(angle), np.sin(angle)], -1)
    p = rng.dirichlet(np.full(K, 0.5))
    return p, origin + np.cumsum(step, 1)


def compare_audit(rng, root, name):
    """Returns a submission of random candidates for every scenario below root."""
    predictions, want = {}, {}
    for folder in sorted({path.parent for path in root.rglob("scenario_*.parquet")}):
        track, kind, origin, heading, speed, rings = scenario(folder)
        p, y = candidates(rng, origin, heading, speed)
        predictions[folder.name] = (p, {track: y})
        if kind in ("vehicle", "bus"):
            want[folder.name] = plain_audit(rings, p, y)
    file = f"{name}.parquet"
    ChallengeSubmission(predictions).to_parquet(Path(file))
    report = json.loads(run("audit", "--submission", file, "--av2", root, "--json", "--rows",
                            f"{name}.csv"))
    check(report["audited"] == len(want) > 0, f"{name}: {report['audited']} audited")
    with open(f"{name}.csv") as lines:
        rows = {row["scenario_id"]: row for row in csv.DictReader(lines)}
    for scene, metrics in want.items():
        for metric in METRICS:
            gap = abs(float(rows[scene][metric]) - metrics[metric])
            check(gap <= 1e-9, f"{scene}: {metric} is {rows[scene][metric]}, {metrics[metric]}")
    for metric in METRICS:
        mean = np.mean([metrics[metric] for metrics in want.values()])
        check(abs(report["mean"][metric] - mean) <= 1e-9, f"{name}: mean {metric}")
    return len(want)


def without_futures(root, other):
    """Copies the scenarios without the rows after the last observed step."""
    for path in root.rglob("scenario_*.parquet"):
        folder = other / path.parent.name
        folder.mkdir(parents=True)
        table = pq.read_table(path)
        pq.write_table(table.filter(pc.less(table["timestep"], 50)), folder / path.name)
        archive, = path.parent.glob("log_map_archive_*.json")
        (folder / archive.name).write_bytes(archive.read_bytes())


def check_blind(root, file):
    """Tests that neither numbers nor bytes depend on the true future."""
    Path("seen").mkdir()
    Path("unseen").mkdir()
    os.symlink(root.resolve(), "seen/av2")
    without_futures(root, Path("unseen/av2"))
    outputs = []
    for folder in ("seen", "unseen"):
        done = subprocess.run([BJEPA, "audit", "--submission", f"../{file}", "--av2", "av2",
                               "--json", "--rows", "rows.csv"], cwd=folder, capture_output=True)
        check(done.returncode == 0, done.stderr)
        outputs.append(done.stdout + Path(folder, "rows.csv").read_bytes())
    check(outputs[0] == outputs[1], "output differs without futures")


def check_blind_model():
    """Tests that a cache of scenarios that end at the last observed step gives the same bytes."""
    outputs = []
    for folder in ("seen", "unseen"):
        run("data", "prep", "--av2", f"{folder}/av2", "--out", f"{folder}/world.bjc")
        done = subprocess.run([BJEPA, "audit", "../model.safetensors", "--data", "world.bjc",
                               "--json"], cwd=folder, capture_output=True)
        check(done.returncode == 0, done.stderr)
        outputs.append(done.stdout)
    check(outputs[0] == outputs[1], "output of a model differs without futures")
    check(b"scenes_digest" in outputs[0], outputs[0])


def compare_model(root):
    """Compares the audit of a model with the audit of its submission."""
    run("data", "prep", "--av2", root, "--out", "world.bjc")
    run("submit", "model.safetensors", "world.bjc", "--out", "model.parquet")
    model = json.loads(run("audit", "model.safetensors", "--data", "world.bjc", "--json"))
    file = json.loads(run("audit", "--submission", "model.parquet", "--av2", root, "--json"))
    check(model["scenes"] == file["audited"], "scenes of model and file")
    check(model["origins_inside"] == file["origins_inside"], "origins of model and file")
    for metric in METRICS:
        gap = abs(model["arms"][0]["mean"][metric] - file["mean"][metric])
        check(gap <= 1e-13, f"{metric} of model and file differ by {gap}")


def main():
    rng = np.random.default_rng(7)
    geometry = compare_geometry(rng, Drivable())
    root = Path("world")
    run("simulate", "--out", root, "--scenes", 24, "--seed", 5, "--split", "val", "-q")
    scenes = compare_audit(rng, root, "simulated")
    check_blind(root, "simulated.parquet")
    subprocess.run([MODEL, "make", "."], check=True)
    check_blind_model()
    compare_model(root)
    real = "BJ_AV2_DATA not set"
    if os.environ.get("BJ_AV2_DATA"):
        data = Path(os.environ["BJ_AV2_DATA"])
        count = sum(compare_audit(rng, data / part, part)
                    for part in ("av2", "av2_from_sensor", "av2_edge"))
        real = f"{count} real scenes equal"
    print(f"{geometry}; {scenes} simulated scenes equal; {real}")


main()
