"""Baselines against an independent implementation that reads and writes with pyarrow alone.

  BJEPA=path/of/bjepa python3 tests/rules/peer_rules.py

1. A constant-velocity submission written here gets the numbers of `bjepa baseline constant-velocity`
   from `bjepa truth --submission`, with a folder, a cache and the law file alone as data.
2. The turn-rate and the six-speed submissions have the points that NumPy computes.
Exit code 0 done, 1 failed, 77 skipped because the packages are not installed.
"""
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import NormalDist

try:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as missing:
    print(f"skipped: {missing.name} is not installed")
    sys.exit(77)

BJEPA = os.environ["BJEPA"]
SCENES = 60
TIME = 0.1 * np.arange(1, 61)


def run(*arguments):
    done = subprocess.run([BJEPA, *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"bjepa {arguments}: exit {done.returncode}: {done.stderr}")
    return done.stdout


def near(found, expected, tolerance, what):
    if not np.all(np.abs(np.asarray(found) - expected) <= tolerance):
        sys.exit(f"FAILED: {what}: {found}, expected {expected}")


def observed(folder):
    """Focal rows of steps 0 to 49, sorted by step, with the ids."""
    table = pq.read_table(next(folder.glob("scenario_*.parquet"))).to_pydict()
    focal = table["focal_track_id"][0]
    rows = [i for i, track in enumerate(table["track_id"])
            if track == focal and table["timestep"][i] < 50]
    rows.sort(key=lambda i: table["timestep"][i])
    columns = ("timestep", "position_x", "position_y", "heading", "velocity_x", "velocity_y")
    return table["scenario_id"][0], focal, {c: np.array([table[c][i] for i in rows]) for c in columns}


def write(path, forecasts):
    """Writes {scenario: (track, [(probability, (60,2))])} in the official format."""
    rows = [(scenario, track, p, y[:, 0].tolist(), y[:, 1].tolist())
            for scenario, (track, modes) in forecasts.items() for p, y in modes]
    names = ["scenario_id", "track_id", "probability", "predicted_trajectory_x",
             "predicted_trajectory_y"]
    pq.write_table(pa.table(dict(zip(names, map(list, zip(*rows))))), path)


def read(path):
    forecasts = {}
    for row in pq.read_table(path).to_pylist():
        y = np.stack([row["predicted_trajectory_x"], row["predicted_trajectory_y"]], 1)
        forecasts.setdefault(row["scenario_id"], []).append((row["probability"], y))
    return forecasts


run("simulate", "--out", "val", "--scenes", SCENES, "--seed", 4, "--split", "val", "-q")
run("simulate", "--cache", "val.bjc", "--scenes", SCENES, "--seed", 4, "--split", "val", "-q")
velocity, scenes = {}, {}
for folder in sorted(p for p in Path("val").iterdir() if p.is_dir()):
    scenario, focal, rows = observed(folder)
    position = np.array([rows["position_x"][-1], rows["position_y"][-1]])
    v = np.array([rows["velocity_x"][-1], rows["velocity_y"][-1]])
    velocity[scenario] = focal, [(1.0, position + TIME[:, None] * v)]
    scenes[scenario] = rows, position, v
write("velocity.parquet", velocity)

for rule in ("constant-velocity", "constant-velocity-6", "constant-turn-rate"):
    run("baseline", rule, "--data", "val", "--out", rule + ".parquet")

# 1. The same numbers.
keys = ("floor", "discrepancy", "expected_es", "recall", "recall_mass", "mass_error", "unexplained",
        "maneuver_error", "brier_excess", "calibration_error", "realized_es")
for data in (("--data", "val"), ("--data", "val.bjc"), ()):
    arms = json.loads(run("truth", "--submission", "velocity.parquet", "constant-velocity.parquet",
                          "val/law.safetensors", *data, "--samples", 16, "--best-scenes", 2, "-q",
                          "--json"))["arms"]
    assert [a["name"] for a in arms] == ["velocity.parquet", "constant-velocity.parquet"]
    for key in keys:
        values = [a[key]["mean"] if isinstance(a[key], dict) else a[key] for a in arms]
        if key == "realized_es" and not data:
            assert values == [None, None], values
        else:
            near(values[0], values[1], 1e-5, key)
    assert arms[0]["scenes"] == SCENES and arms[0]["discrepancy"]["mean"] > 1

# 2. The same points. Features are rounded to float, so a point is off by some micrometers.
spread, turn = read("constant-velocity-6.parquet"), read("constant-turn-rate.parquet")
factors = 1 + 0.3 * np.array([NormalDist().inv_cdf((k + 0.5) / 6) for k in range(6)])
for scenario, (rows, position, v) in scenes.items():
    modes = sorted(spread[scenario], key=lambda m: np.linalg.norm(m[1][-1] - position))
    assert len(modes) == 6
    for (p, y), f in zip(modes, factors):
        near(p, 1 / 6, 1e-12, "probability")
        near(y, position + TIME[:, None] * v * f, 1e-4, "six speeds")
    last = rows["timestep"] >= 40
    heading = np.unwrap(rows["heading"][last])
    rate = np.polyfit(0.1 * rows["timestep"][last], heading, 1)[0]
    fine = (np.arange(6000) + 0.5) / 1000
    angle = np.arctan2(v[1], v[0]) + rate * fine
    path = np.cumsum(np.linalg.norm(v) * np.stack([np.cos(angle), np.sin(angle)], 1), 0) / 1000
    near(turn[scenario][0][1], position + path[99::100], 1e-3, "turn rate")
print(f"peer_rules: {len(scenes)} scenes agree")
