"""Reads a cache as described in docs/DATA.md without our code: with safetensors, NumPy and hashlib.

  BJEPA=bjepa TEST_MAKE_SCENARIOS=program python3 tests/data/peer_cache.py

`bjepa data prep` converts invented scenarios. Every tensor, fact and digest of the cache is compared with
the description, drivable areas with the map files, and, if pyarrow is installed, some positions with the
rows of the scenario files.
Exit codes: 0 success, 1 failure, 77 skipped because a package is not installed.
"""
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

try:
    import numpy as np
    from safetensors import safe_open
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

ORDER = """records record_start origin heading focal_valid future_valid map map_ring_start ring_start
points future neighbors_available polylines_available ring_count points_cm neighbors polylines city
focal_type ring_exact scenario_id focal_id map_sha256 scene_sha256 map_digest""".split()
CONTENT = {"records", "future", "points", "points_cm"}


def text(row):
    return bytes(row).rstrip(b"\0").decode()


def read(path):
    with safe_open(path, framework="np") as f:
        return f.metadata(), {name: f.get_tensor(name) for name in f.keys()}


def index_digest(facts, tensors):
    h = hashlib.sha256()
    for key in sorted(facts, key=str.encode):
        if key != "digest":
            h.update(key.encode() + b"\0" + facts[key].encode() + b"\0")
    for name in ORDER:
        if name not in CONTENT:
            shape = " ".join(str(n) for n in tensors[name].shape)
            h.update(f"{name} {shape}".encode() + b"\0" + tensors[name].tobytes())
    return h.hexdigest()


def rings(tensors, number):
    first = tensors["map_ring_start"]
    for r in range(first[number], first[number + 1]):
        start, count = tensors["ring_start"][r], tensors["ring_count"][r]
        exact = tensors["ring_exact"][r]
        points = tensors["points_cm" if exact else "points"][start:start + count]
        yield int(count), int(exact), points


def check_scene(facts, t, s, folder):
    start = t["record_start"][s]
    end = t["record_start"][s + 1] if s + 1 < len(t["record_start"]) else t["records"].size
    k, p = int(t["neighbors"][s]), int(t["polylines"][s])
    used = 350 * (1 + k) + 60 * p
    record = t["records"][start:end]
    assert start % 16 == 0 and end - start == (used + 15) // 16 * 16 and not record[used:].any()
    digest = hashlib.sha256(record.tobytes() + t["future"][s].tobytes()).digest()
    assert digest == bytes(t["scene_sha256"][s])
    scenario = text(t["scenario_id"][s])
    raw = (folder / f"log_map_archive_{scenario}.json").read_bytes()
    assert hashlib.sha256(raw).digest() == bytes(t["map_sha256"][s])
    h = hashlib.sha256()
    areas = [[(q["x"], q["y"]) for q in area["area_boundary"]]
             for area in json.loads(raw)["drivable_areas"].values()]
    stored = list(rings(t, t["map"][s]))
    assert len(stored) == len(areas)
    for area, (count, exact, points) in zip(areas, stored):
        h.update(count.to_bytes(4, "little") + bytes([exact]) + points.tobytes())
        meters = points / 100.0 if exact else points
        assert np.array_equal(meters, np.array(area))
    assert h.digest() == bytes(t["map_digest"][t["map"][s]])
    check_rows(facts, t, s, record[:350].reshape(50, 7), folder / f"scenario_{scenario}.parquet")


def check_rows(facts, t, s, focal, path):
    try:
        import pyarrow.parquet as pq
    except ImportError:
        return
    table = pq.read_table(path).to_pydict()
    focal_id = text(t["focal_id"][s])
    rows = [i for i, name in enumerate(table["track_id"]) if name == focal_id]
    steps = [table["timestep"][i] for i in rows]
    assert sum(1 << n for n in steps if n < 50) == int(t["focal_valid"][s])
    assert sum(1 << n - 50 for n in steps if n >= 50) == int(t["future_valid"][s])
    assert json.loads(facts["cities"])[t["city"][s]] == table["city"][0]
    assert json.loads(facts["types"])[t["focal_type"][s]] == table["object_type"][rows[0]]
    c, d = np.cos(t["heading"][s]), np.sin(t["heading"][s])
    city = np.array([(table["position_x"][i], table["position_y"][i]) for i in rows])
    local = np.array([(*focal[n, :2],) if n < 50 else (*t["future"][s][n - 50],) for n in steps])
    back = local @ np.array([[c, d], [-d, c]]) + t["origin"][s]
    assert np.abs(back - city).max() < 1e-4


def main():
    folder = Path("scenarios")
    folder.mkdir()
    made = subprocess.run([os.environ["TEST_MAKE_SCENARIOS"], str(folder), "77", "25"], check=True,
                          capture_output=True, text=True).stdout.split()
    subprocess.run([os.environ["BJEPA"], "data", "prep", "--av2", str(folder), "--out", "x.bjc", "-q"],
                   check=True, capture_output=True)
    facts, t = read("x.bjc")
    assert facts["format"] == "branchjepa-cache" and facts["version"] == "1"
    assert [int(facts[n]) for n in ("obs", "fut", "neighbors", "polylines", "points")] == [
        50, 60, 16, 48, 10]
    header = int.from_bytes(Path("x.bjc").read_bytes()[:8], "little")
    assert header == 65528
    with open("x.bjc", "rb") as f:
        f.seek(8)
        entries = json.loads(f.read(header))
    del entries["__metadata__"]
    assert sorted(entries, key=lambda n: (entries[n]["data_offsets"], ORDER.index(n))) == ORDER
    assert [text(row) for row in t["scenario_id"]] == sorted(made)
    assert int(facts["scenes"]) == len(made) and int(facts["maps"]) == len(t["map_digest"])
    assert 1 < len(t["map_digest"]) < len(made) and t["points"].size and t["points_cm"].size
    for s, scenario in enumerate(sorted(made)):
        check_scene(facts, t, s, folder / scenario)
    assert index_digest(facts, t) == facts["digest"]
    print(f"cache: {len(made)} scenes, {len(t['map_digest'])} maps agree with the description")


main()
