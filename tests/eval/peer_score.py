"""Compares scores and submissions with the classes and functions of the av2 package.

  BJEPA=path/of/bjepa BJ_BUILD=build/release BJ_ROOT=. python3 tests/eval/peer_score.py

1. Random submissions with 1 to 6 modes are written by ChallengeSubmission.to_parquet and scored by `bjepa
   score` with scenario files. Every scene and the means equal the official functions, and the
   distributional metrics equal a NumPy implementation.
2. The scores with a cache are equal to single precision.
3. ChallengeSubmission.from_parquet reads the files of our writer with equal values.
4. We and the official class accept the same files if probability sums are near the tolerance.
5. With more than six modes, K = 6 are the six most probable ones.
6. The official class reads the files of `bjepa submit`, and its functions give equal scores.
7. The stored file of the official tool, and real files if BJ_AV2_GOLDEN or BJ_AV2_DATA is set, are scored.
Exit codes: 0 success, 1 failure, 77 skipped because a package is not installed.
"""
import csv
import json
import os
import subprocess
import sys
from pathlib import Path

try:
    import numpy as np
    import pandas as pd
    from av2.datasets.motion_forecasting.eval import metrics as official
    from av2.datasets.motion_forecasting.eval.submission import ChallengeSubmission
except ImportError as missing:
    print(f"skipped: {missing.name} is not installed")
    sys.exit(77)

BJEPA = os.environ["BJEPA"]
TOOL = os.environ.get("TEST_SCORE") or os.path.join(
    os.environ["BJ_BUILD"], "tests", "test_eval_score")
MODEL = os.environ.get("TEST_SUBMIT") or os.path.join(
    os.environ["BJ_BUILD"], "tests", "test_eval_submit")
STORED = Path(os.environ["BJ_ROOT"]) / "tests/data/submission/official.parquet"
LAST, F = 49, 60


def check(condition, what):
    if not condition:
        print("FAILED:", what)
        sys.exit(1)


def near(found, expected, tolerance, what):
    check(abs(found - expected) <= tolerance, f"{what}: {found}, expected {expected}")


def run(*arguments, code=0):
    done = subprocess.run([BJEPA, *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    check(done.returncode == code, f"bjepa {arguments}: exit {done.returncode}, expected {code}: "
                                   f"{done.stderr}{done.stdout[:300]}")
    return done.stdout


# ------------------------------------------------------------------------------- invented scenarios

def make_scenario(rng, root, number):
    """Writes a scenario with a focal track on a noisy arc and one neighbor. Returns the true future."""
    name = f"{number:08x}-0000-4000-8000-{number * 7919:012x}"
    origin, heading = rng.uniform(-8000, 8000, 2), rng.uniform(-np.pi, np.pi)
    speed, turn = rng.choice([0.05, 1.5, 4, 8, 13, 18]), rng.normal(0, 0.015)
    t = np.arange(110) - LAST
    angle = heading + turn * t
    path = np.cumsum(0.1 * speed * np.stack([np.cos(angle), np.sin(angle)], 1), 0)
    path = origin + path - path[LAST] + rng.normal(0, 0.02, path.shape)
    velocity = speed * np.stack([np.cos(angle), np.sin(angle)], 1)
    kind = rng.choice(["vehicle", "bus", "cyclist"])
    focal = pd.DataFrame({"track_id": "17", "object_type": kind, "object_category": 3,
                          "timestep": np.arange(110), "position_x": path[:, 0],
                          "position_y": path[:, 1], "heading": angle,
                          "velocity_x": velocity[:, 0], "velocity_y": velocity[:, 1]})
    other = focal.assign(track_id="AV", object_category=1, position_x=focal.position_x + 9)
    frame = pd.concat([other, focal]).assign(
        observed=lambda d: d.timestep <= LAST, scenario_id=name, focal_track_id="17",
        city=rng.choice(["austin", "miami", "palo-alto"]), start_timestamp=0.0,
        end_timestamp=1.09e10, num_timestamps=110)
    folder = root / name
    folder.mkdir(parents=True)
    frame.to_parquet(folder / f"scenario_{name}.parquet")
    (folder / f"log_map_archive_{name}.json").write_text(
        '{"drivable_areas":{},"lane_segments":{},"pedestrian_crossings":{}}')
    return name, {"future": path[LAST + 1:], "origin": path[LAST], "heading": angle[LAST],
                  "track": "17"}


def make_predictions(rng, truths, most):
    predictions = {}
    for name, truth in truths.items():
        K = int(rng.integers(1, most + 1))
        weights = rng.dirichlet(np.full(K, 0.7)) + 1e-6
        scale = rng.choice([0.3, 2, 8])
        drift = rng.normal(0, scale, (K, 1, 2)) * np.linspace(0, 1, F)[:, None]
        lines = truth["future"] + drift + rng.normal(0, 0.05, (K, F, 2))
        predictions[name] = (weights / weights.sum(), {truth["track"]: lines})
    return predictions


# ------------------------------------------------------------------------------------- measures

def official_values(p, y, t):
    """Returns the official metrics. The official functions leave the minimum over modes to the caller."""
    order = np.argsort(-p, kind="stable")[:6]
    p, y = p[order], y[order]
    ade, fde = official.compute_ade(y, t), official.compute_fde(y, t)
    missed = official.compute_is_missed_prediction(y, t)
    brier_ade = official.compute_brier_ade(y, t, p)
    brier_fde = official.compute_brier_fde(y, t, p)
    a, f = np.argmin(ade), np.argmin(fde)
    return {"min_ade_1": ade[0], "min_fde_1": fde[0], "mr_1": float(missed[0]),
            "brier_min_ade_1": brier_ade[0], "brier_min_fde_1": brier_fde[0],
            "min_ade_6": ade[a], "min_ade_at_min_fde_6": ade[f], "min_fde_6": fde[f],
            "mr_6": float(missed[f]), "brier_min_ade_6": brier_ade[a],
            "brier_min_fde_6": brier_fde[f]}


def local(points, truth):
    c, s = np.cos(truth["heading"]), np.sin(truth["heading"])
    return (points - truth["origin"]) @ np.array([[c, -s], [s, c]])


def maneuver(end):
    if np.hypot(*end) < 2:
        return 0
    degrees = np.degrees(np.arctan2(end[1], end[0]))
    return 2 if degrees >= 30 else 3 if degrees <= -30 else 1


def entropy(p):
    p = p[p > 0]
    return np.exp(-np.sum(p * np.log(p)))


def clusters(ends):
    """Returns labels of points that are connected by chains of steps of at most 1 m."""
    near_by = np.linalg.norm(ends[:, None] - ends[None], axis=-1) <= 1
    for _ in range(len(ends)):
        near_by = near_by @ near_by
    return np.argmax(near_by, axis=1)


def distribution(p, y, truth):
    y, t = local(y, truth), local(truth["future"], truth)
    rms = lambda a, b: np.sqrt(np.mean(np.sum((a - b) ** 2, -1), -1))
    d_fit, d_pair = rms(y, t), rms(y[:, None], y[None])
    e_fit = np.linalg.norm(y[:, -1] - t[-1], axis=-1)
    e_pair = np.linalg.norm(y[:, None, -1] - y[None, :, -1], axis=-1)
    mass = np.zeros(4)
    np.add.at(mass, [maneuver(e) for e in y[:, -1]], p)
    hit = np.zeros(4)
    hit[maneuver(t[-1])] = 1
    label = clusters(y[:, -1])
    return {"traj_obs": p @ d_fit, "traj_disp": p @ d_pair @ p / 2,
            "traj_es": p @ d_fit - p @ d_pair @ p / 2, "end_es": p @ e_fit - p @ e_pair @ p / 2,
            "exp_ade": p @ np.mean(np.linalg.norm(y - t, axis=-1), -1), "exp_fde": p @ e_fit,
            "brier": np.sum((mass - hit) ** 2), "exp_entropy": entropy(p),
            "dedup_support": entropy(np.bincount(label, weights=p)),
            "confidence": mass.max(), "hit": hit[np.argmax(mass)]}


def compare(file, truths, predictions, truth_path, tolerance, *options):
    """Scores the file and compares every scene and the means with the two functions above."""
    report = json.loads(run("score", file, "--av2", truth_path, "--json", "--rows", "rows.csv",
                            *options))
    check(report["passed"] and report["scored"] == len(truths), "not everything was scored")
    rows = {r["scenario_id"]: r for r in csv.DictReader(open("rows.csv"))}
    sums, bins = {}, np.zeros((10, 2))
    for name, truth in truths.items():
        p, tracks = predictions[name]
        y = tracks[truth["track"]]
        values = official_values(p, y, truth["future"])
        values.update(distribution(p, y, truth))
        confidence, hit = values.pop("confidence"), values.pop("hit")
        bins[min(int(confidence * 10), 9)] += (confidence, hit)
        for key, value in values.items():
            near(float(rows[name][key]), value, tolerance, f"{name} {key}")
            sums[key] = sums.get(key, 0) + value
        check(float(rows[name]["modes"]) == len(p), f"{name} modes")
    everything = report["groups"][0]
    for key, value in sums.items():
        near(everything[key], value / len(truths), tolerance, f"mean {key}")
    near(everything["ece"], np.abs(bins[:, 0] - bins[:, 1]).sum() / len(truths), tolerance, "ece")
    for by in ("maneuver", "type", "city", "speed"):
        parts = [g for g in report["groups"] if g["by"] == by]
        check(sum(g["scenes"] for g in parts) == len(truths), f"groups by {by} are not everything")
        near(sum(g["scenes"] * g["min_fde_6"] for g in parts),
             everything["scenes"] * everything["min_fde_6"], 1e-6, f"groups by {by}")
    return report


def same_predictions(a, b, what):
    check(set(a) == set(b), f"{what}: scenarios")
    for name, (p, tracks) in a.items():
        check(set(tracks) == set(b[name][1]), f"{what}: tracks of {name}")
        for track, y in tracks.items():
            order = np.argsort(-p, kind="stable")
            other = np.argsort(-b[name][0], kind="stable")
            check(np.array_equal(p[order], b[name][0][other]), f"{what}: weights of {name}")
            check(np.array_equal(y[order], b[name][1][track][other]), f"{what}: lines of {name}")


# ------------------------------------------------------------------------------------- the steps

def check_sums(rng, truths):
    """Tests that the official class and our check have the same tolerance."""
    accepted = 0
    name, truth = next(iter(truths.items()))
    for i in range(60):
        wanted = 1 + rng.choice([-1, 1]) * rng.uniform(0.8e-5, 1.2e-5)
        p = np.array([0.4, 0.35, 0.25]) * wanted
        rows = [{"scenario_id": name, "track_id": "17", "probability": w,
                 "predicted_trajectory_x": truth["future"][:, 0] + k,
                 "predicted_trajectory_y": truth["future"][:, 1]} for k, w in enumerate(p)]
        pd.DataFrame(rows).to_parquet("sum.parquet")
        try:
            ChallengeSubmission.from_parquet(Path("sum.parquet"))
            theirs = True
        except ValueError:
            theirs = False
        run("score", "--check", "sum.parquet", code=0 if theirs else 4)
        accepted += theirs
    check(5 < accepted < 55, f"dull sums: {accepted} of 60 accepted")


def check_golden():
    """Tests the example that the official class wrote, whose numbers are also in an npz file."""
    folder = os.environ.get("BJ_AV2_GOLDEN")
    if not folder or not (Path(folder) / "submission_example.parquet").exists():
        return "BJ_AV2_GOLDEN not set"
    source = Path(folder) / "submission_example.parquet"
    run("score", "--check", source)
    subprocess.run([TOOL, "rewrite", source, "golden.parquet"], check=True)
    golden = np.load(Path(folder) / "submission_example.npz")
    frame = pd.read_parquet("golden.parquet")
    text = lambda v: v.decode() if isinstance(v, bytes) else str(v)
    for i, name in enumerate(golden["scenario_ids"]):
        part = frame[frame.scenario_id == text(name)]
        check((part.track_id == text(golden["track_ids"][i])).all(), "golden track")
        check(np.array_equal(part.probability.to_numpy(), golden["probabilities"][i]), "golden p")
        y = np.stack([np.stack(part.predicted_trajectory_x), np.stack(part.predicted_trajectory_y)],
                     -1)
        check(np.array_equal(y, golden["trajectories"][i]), "golden trajectories")
    return "golden equal"


def check_real(rng):
    """Tests constant-velocity forecasts of real scenarios with ground truth from the official loader."""
    folder = os.environ.get("BJ_AV2_DATA")
    if not folder:
        return "BJ_AV2_DATA not set"
    from av2.datasets.motion_forecasting.scenario_serialization import (
        load_argoverse_scenario_parquet)
    scored = gaps = 0
    for part in ("av2", "av2_from_sensor", "av2_edge"):
        root, truths, blind = Path(folder) / part, {}, {}
        for path in sorted(root.rglob("scenario_*.parquet")):
            scenario = load_argoverse_scenario_parquet(path)
            focal = next(t for t in scenario.tracks if t.track_id == scenario.focal_track_id)
            states = {s.timestep: s for s in focal.object_states}
            known = np.array(sorted(t for t in states if t >= LAST))
            xy = np.array([states[t].position for t in known])
            steps = np.arange(LAST + 1, LAST + 1 + F)
            future = np.stack([np.interp(steps, known, xy[:, i]) for i in (0, 1)], 1)
            truth = {"future": future, "origin": xy[0], "heading": states[LAST].heading,
                     "track": focal.track_id}
            (truths if len(known) > 1 else blind)[scenario.scenario_id] = truth
            gaps += 1 < len(known) < 1 + F
        predictions = make_predictions(rng, {**truths, **blind}, 6)
        ChallengeSubmission(predictions).to_parquet(Path("real.parquet"))
        report = compare("real.parquet", truths, predictions, root, 1e-9)
        check(report["no_future"] == len(blind), f"{report['no_future']} without a future")
        scored += len(truths)
    return f"{scored} real scenarios equal, {gaps} of them with gaps"


def main():
    rng = np.random.default_rng(5)
    root = Path("val")
    truths = dict(make_scenario(rng, root, n) for n in range(40))
    for trial in range(3):
        predictions = make_predictions(rng, truths, 6)
        ChallengeSubmission(predictions).to_parquet(Path("random.parquet"))
        report = compare("random.parquet", truths, predictions, root, 1e-9)
        subprocess.run([TOOL, "rewrite", "random.parquet", "ours.parquet"], check=True)
        ours = ChallengeSubmission.from_parquet(Path("ours.parquet")).predictions
        same_predictions(predictions, ours, "our file in the official class")
    run("data", "prep", "--av2", root, "--out", "val.bjc")
    compare("random.parquet", truths, predictions, "val.bjc", 1e-5)
    subprocess.run([MODEL, "make", "."], check=True)
    run("submit", "model.safetensors", "val.bjc", "--out", "model.parquet")
    predictions = ChallengeSubmission.from_parquet(Path("model.parquet")).predictions
    compare("model.parquet", truths, predictions, root, 1e-9)
    predictions = make_predictions(rng, truths, 15)
    ChallengeSubmission(predictions).to_parquet(Path("many.parquet"))
    compare("many.parquet", truths, predictions, root, 1e-9, "--max-modes", 64)
    run("score", "many.parquet", "--av2", root, code=4)
    check_sums(rng, truths)
    run("score", "--check", STORED)
    subprocess.run([TOOL, "rewrite", STORED, "stored.parquet"], check=True)
    same_predictions(ChallengeSubmission.from_parquet(STORED).predictions,
                     ChallengeSubmission.from_parquet(Path("stored.parquet")).predictions, "stored")
    print(f"{len(truths)} scenarios, 6 submissions equal to the official functions "
          f"(last minFDE6 {report['groups'][0]['min_fde_6']:.4f}); {check_golden()}; "
          f"{check_real(rng)}")


main()
