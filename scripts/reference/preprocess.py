#!/usr/bin/env python3
"""Converts the files of a motion-forecasting scenario to the arrays of docs/DATA.md, in pyarrow and NumPy.

This is a second implementation with which src/data/ is compared. Tracks are a dense table of (track,
step), points are complex numbers, and every selection is a full sort. The rule numbers are those of
docs/DATA.md. tests/data/peer_features.py and bench/compare_av2.py use this module.

    preprocess.py FOLDER...     prints a summary of each scene
"""
from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet

STEPS, OBSERVED, NEIGHBORS, POLYLINES, POINTS = 110, 50, 16, 48, 10
LAST = OBSERVED - 1
TEXTS = ("track_id", "object_type", "scenario_id", "focal_track_id", "city")
NUMBERS = ("position_x", "position_y", "velocity_x", "velocity_y", "heading")


@dataclass
class Scene:
    """The content of bj_features, with texts instead of track numbers."""
    scenario_id: str
    origin: complex
    heading: float
    focal: np.ndarray         # (50,7)
    future: np.ndarray        # (60,2)
    future_valid: np.ndarray  # (60)
    neighbors: np.ndarray     # (n,50,7), n <= 16
    neighbor_ids: list[str]
    neighbors_available: int
    polylines: np.ndarray     # (p,10,6), p <= 48
    polyline_ids: list[int]
    polylines_available: int


def rank(offsets: np.ndarray) -> np.ndarray:
    """Rule 5: rounds to tenths of a millimeter. Does not use abs(), which rounds differently."""
    return np.floor(1e4 * np.sqrt(offsets.real ** 2 + offsets.imag ** 2) + 0.5)


def pairs(values: np.ndarray) -> np.ndarray:
    """Converts complex numbers to a last axis of size two."""
    return np.stack([values.real, values.imag], axis=-1)


# ------------------------------------------------------------------------------------------ tracks

def read_tracks(path: Path) -> tuple[dict, list[str], list[str], np.ndarray]:
    """Returns facts, ids and types in the order of first rows, and a table (tracks, steps, 5) with NaN for
    missing rows. Assignment in file order keeps the last of repeated rows (rule 1)."""
    table = parquet.read_table(path, columns=["timestep", *TEXTS, *NUMBERS], use_threads=False)
    codes = table["track_id"].combine_chunks().dictionary_encode()
    ids, track = codes.dictionary.to_pylist(), codes.indices.to_numpy()
    _, first = np.unique(track, return_index=True)
    types = [table["object_type"][int(row)].as_py() for row in first]
    step = table["timestep"].to_numpy()
    if step.min() < 0 or step.max() >= STEPS:
        raise ValueError(f"{path}: a step outside 0 to {STEPS - 1}")
    state = np.full((len(ids), STEPS, len(NUMBERS)), np.nan)
    state[track, step] = np.stack([table[name].to_numpy() for name in NUMBERS], axis=1)
    facts = {name: table[name][0].as_py() for name in ("scenario_id", "focal_track_id", "city")}
    return facts, ids, types, state


def histories(state: np.ndarray, flags: np.ndarray, origin: complex, heading: float) -> np.ndarray:
    """Rules 3, 4 and 6: (n,110,5) -> (n,50,7)."""
    state = state[:, :OBSERVED]
    turn = np.exp(-1j * heading)
    position = (state[..., 0] + 1j * state[..., 1] - origin) * turn
    velocity = (state[..., 2] + 1j * state[..., 3]) * turn
    facing = np.exp(1j * (state[..., 4] - heading))
    kind = np.broadcast_to(flags[:, None, None], state.shape[:2] + (1,))
    out = np.concatenate([pairs(position), pairs(velocity), pairs(facing), kind], axis=-1)
    return np.where(np.isnan(state[..., :1]), 0.0, out)


def future_of(positions: np.ndarray, origin: complex, heading: float
              ) -> tuple[np.ndarray, np.ndarray]:
    """Rule 7: (110) complex city positions of the focal track -> (60,2), (60)."""
    valid = ~np.isnan(positions.real)
    if not valid[OBSERVED:].any():
        return np.zeros((STEPS - OBSERVED, 2)), valid[OBSERVED:]
    known = np.flatnonzero(valid & (np.arange(STEPS) >= LAST))
    local = (positions[known] - origin) * np.exp(-1j * heading)
    wanted = np.arange(OBSERVED, STEPS)
    filled = np.interp(wanted, known, local.real) + 1j * np.interp(wanted, known, local.imag)
    return pairs(filled), valid[OBSERVED:]


# --------------------------------------------------------------------------------------------- map

def resample(points: list[dict]) -> np.ndarray:
    """Rule 9: ten complex points at equal distances along the line."""
    line = np.array([complex(point["x"], point["y"]) for point in points])
    step = np.diff(line)
    along = np.concatenate([[0.0], np.cumsum(np.sqrt(step.real ** 2 + step.imag ** 2))])
    if along[-1] == 0:
        return np.full(POINTS, line[0])
    keep = np.concatenate([[True], np.diff(along) > 0])   # repeated points would cause a division by zero
    wanted = along[-1] * np.arange(POINTS) / (POINTS - 1)
    out = (np.interp(wanted, along[keep], line.real[keep])
           + 1j * np.interp(wanted, along[keep], line.imag[keep]))
    out[0], out[-1] = line[0], line[-1]
    return out


def read_lines(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rules 8 and 10: points (n,10) complex, ids, intersection and crosswalk flags."""
    with open(path, "rb") as file:
        town = json.load(file)
    lanes = list(town["lane_segments"].values())
    crossings = list(town.get("pedestrian_crossings", {}).values())
    lines = [(resample(lane["left_lane_boundary"]) + resample(lane["right_lane_boundary"])) / 2
             for lane in lanes] + [resample(crossing["edge1"]) for crossing in crossings]
    ids = np.array([int(item["id"]) for item in lanes + crossings], dtype=np.int64)
    intersection = np.array([float(lane["is_intersection"]) for lane in lanes]
                            + [0.0] * len(crossings))
    crosswalk = np.repeat([0.0, 1.0], [len(lanes), len(crossings)])
    return np.array(lines).reshape(-1, POINTS), ids, intersection, crosswalk


def line_features(lines: np.ndarray, intersection: np.ndarray, crosswalk: np.ndarray,
                  origin: complex, heading: float) -> np.ndarray:
    """Rules 10 and 11: (n,10) -> (n,10,6)."""
    local = (lines - origin) * np.exp(-1j * heading)
    step = np.diff(local, axis=1)
    size = np.abs(step)
    tangent = np.where(size < 1e-6, 0.0, step / np.where(size < 1e-6, 1.0, size))
    tangent = np.concatenate([tangent, tangent[:, -1:]], axis=1)
    flags = np.broadcast_to(np.stack([intersection, crosswalk], 1)[:, None], lines.shape + (2,))
    return np.concatenate([pairs(local), pairs(tangent), flags], axis=-1)


# ------------------------------------------------------------------------------------------- scene

def preprocess(folder: str | Path) -> Scene:
    folder = Path(folder)
    scenario, = folder.glob("scenario_*.parquet")
    archive, = folder.glob("log_map_archive_*.json")
    facts, ids, types, state = read_tracks(scenario)
    focal = ids.index(facts["focal_track_id"])
    positions = state[..., 0] + 1j * state[..., 1]
    origin, heading = positions[focal, LAST], float(state[focal, LAST, 4])
    if np.isnan(heading):
        raise ValueError(f"{scenario}: focal track {ids[focal]} has no row at step {LAST}")

    others = np.flatnonzero(~np.isnan(state[:, LAST, 0]) & (np.arange(len(ids)) != focal))
    order = others[np.argsort(rank(positions[others, LAST] - origin), kind="stable")][:NEIGHBORS]
    flags = np.array([float(types[track] not in ("vehicle", "bus")) for track in order])
    future, future_valid = future_of(positions[focal], origin, heading)

    lines, line_ids, intersection, crosswalk = read_lines(archive)
    nearest = (rank(lines - origin).min(axis=1) if len(lines) else np.zeros(0))
    chosen = np.lexsort((line_ids, crosswalk, nearest))[:POLYLINES]   # rule 12; the last key is the primary one
    return Scene(
        scenario_id=facts["scenario_id"], origin=complex(origin), heading=heading,
        focal=histories(state[focal:focal + 1], np.zeros(1), origin, heading)[0],
        future=future, future_valid=future_valid,
        neighbors=histories(state[order], flags, origin, heading),
        neighbor_ids=[ids[track] for track in order], neighbors_available=len(others),
        polylines=line_features(lines[chosen], intersection[chosen], crosswalk[chosen], origin,
                                heading),
        polyline_ids=line_ids[chosen].tolist(), polylines_available=len(lines))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        scene = preprocess(name)
        print(f"{scene.scenario_id}: {len(scene.neighbors)} of {scene.neighbors_available} "
              f"neighbors, {len(scene.polylines)} of {scene.polylines_available} polylines, "
              f"{int(scene.future_valid.sum())} future steps")
