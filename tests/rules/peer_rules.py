"""Compares baselines with independent implementations that read and write with pyarrow and av2.

  BJEPA=path/of/bjepa BJ_ROOT=. python3 tests/rules/peer_rules.py

1. The program in docs/BENCHMARK.md, which uses pyarrow alone, writes a constant-velocity submission that
   gets the numbers of `bjepa baseline constant-velocity` from `bjepa truth --submission`, with a folder, a
   cache and the law file alone as data. So does a submission made with the av2 package.
2. The turn-rate and the six-speed submissions have the points that NumPy computes.
Exit codes: 0 success, 1 failure, 77 skipped because a package is not installed.
"""
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import NormalDist

try:
    import numpy as np
    import pyarrow.parquet as pq
    from av2.datasets.motion_forecasting import scenario_serialization
    from av2.datasets.motion_forecasting.eval.submission import ChallengeSubmission
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


def documented_program():
    """Returns the Python program of the documentation."""
    text = Path(os.environ["BJ_ROOT"], "docs/BENCHMARK.md").read_text()
    return text.split("```python\n")[1].split("```")[0]


def read(path):
    forecasts = {}
    for row in pq.read_table(path).to_pylist():
        y = np.stack([row["predicted_trajectory_x"], row["predicted_trajectory_y"]], 1)
        forecasts.setdefault(row["scenario_id"], []).append((row["probability"], y))
    return forecasts


run("simulate", "--out", "val", "--scenes", SCENES, "--seed", 4, "--split", "val", "-q")
run("simulate", "--cache", "val.bjc", "--scenes", SCENES, "--seed", 4, "--split", "val", "-q")
Path("entry.py").write_text(documented_program())
subprocess.run([sys.executable, "entry.py", "val", "pyarrow.parquet"], check=True)

scenes, predictions = {}, {}
for path in sorted(Path("val").glob("*/scenario_*.parquet")):
    scenario = scenario_serialization.load_argoverse_scenario_parquet(path)
    track = next(t for t in scenario.tracks if t.track_id == scenario.focal_track_id)
    states = [s for s in track.object_states if s.timestep < 50]
    position, v = np.array(states[-1].position), np.array(states[-1].velocity)
    scenes[scenario.scenario_id] = states, position, v
    predictions[scenario.scenario_id] = (
        np.ones(1), {track.track_id: (position + TIME[:, None] * v)[None]})
ChallengeSubmission(predictions).to_parquet(Path("av2.parquet"))

for rule in ("constant-velocity", "constant-velocity-6", "constant-turn-rate"):
    run("baseline", rule, "--data", "val", "--out", rule + ".parquet")

# 1. The same numbers.
keys = ("floor", "discrepancy", "expected_es", "recall", "recall_mass", "mass_error", "unexplained",
        "maneuver_error", "brier_excess", "calibration_error", "realized_es")
for data in (("--data", "val"), ("--data", "val.bjc"), ()):
    arms = json.loads(run("truth", "--submission", "constant-velocity.parquet", "pyarrow.parquet",
                          "av2.parquet", "val/law.safetensors", *data, "--samples", 16, "--best-scenes", 2, "-q",
                          "--json"))["arms"]
    assert len(arms) == 3
    for key in keys:
        values = [a[key]["mean"] if isinstance(a[key], dict) else a[key] for a in arms]
        if key == "realized_es" and not data:
            assert values == [None, None, None], values
        else:
            near(values, values[0], 1e-5, key)
    assert arms[0]["scenes"] == SCENES and arms[0]["discrepancy"]["mean"] > 1

# 2. The same points. Features are rounded to float, so a point is off by some micrometers.
spread, turn = read("constant-velocity-6.parquet"), read("constant-turn-rate.parquet")
factors = 1 + 0.3 * np.array([NormalDist().inv_cdf((k + 0.5) / 6) for k in range(6)])
for scenario, (states, position, v) in scenes.items():
    modes = sorted(spread[scenario], key=lambda m: np.linalg.norm(m[1][-1] - position))
    assert len(modes) == 6
    for (p, y), f in zip(modes, factors):
        near(p, 1 / 6, 1e-12, "probability")
        near(y, position + TIME[:, None] * v * f, 1e-4, "six speeds")
    last = [s for s in states if s.timestep >= 40]
    heading = np.unwrap([s.heading for s in last])
    rate = np.polyfit([0.1 * s.timestep for s in last], heading, 1)[0]
    angle = np.arctan2(v[1], v[0]) + rate * (np.arange(6000) + 0.5) / 1000
    path = np.cumsum(np.linalg.norm(v) * np.stack([np.cos(angle), np.sin(angle)], 1), 0) / 1000
    near(turn[scenario][0][1], position + path[99::100], 1e-3, "turn rate")
print(f"peer_rules: {len(scenes)} scenes agree")
