"""Reads simulated scenarios with the official av2 package.

  TEST_SIMULATE=path/of/test_simulate python3 tests/world/peer_av2.py

1. Every scenario file loads, with 110 time stamps, the ego vehicle, a complete focal track, states
   in order, and the categories and types of the package.
2. Every map loads. Center lines, polygons, neighbors and drivable areas are valid, consecutive lanes share
   endpoints, and the focal vehicle starts inside the drivable area.
Exit codes: 0 success, 1 failure, 77 skipped because a package is not installed.
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy as np
    from av2.datasets.motion_forecasting import scenario_serialization
    from av2.datasets.motion_forecasting.data_schema import TrackCategory
    from av2.map.map_api import ArgoverseStaticMap
except ImportError:
    print("skipped: the Python package av2 is not installed")
    sys.exit(77)

TOOL = os.environ.get("TEST_SIMULATE") or os.path.join(
    os.environ["BJ_BUILD"], "tests", "test_world_simulate")
SCENES = 36
checked = 0


def check(condition, what):
    global checked
    checked += 1
    if not condition:
        print("FAILED:", what)
        sys.exit(1)


def check_scenario(path, name):
    scenario = scenario_serialization.load_argoverse_scenario_parquet(path)
    check(scenario.scenario_id == name, f"{name}: id is {scenario.scenario_id}")
    check(len(scenario.timestamps_ns) == 110, f"{name}: {len(scenario.timestamps_ns)} time stamps")
    step = np.diff(np.asarray(scenario.timestamps_ns, dtype=np.float64))
    check(np.allclose(step, 1e8, rtol=1e-6), f"{name}: time stamps are not 0.1 s apart")
    tracks = {t.track_id: t for t in scenario.tracks}
    check(len(tracks) == len(scenario.tracks), f"{name}: track ids repeat")
    check("AV" in tracks, f"{name}: no ego vehicle")
    focal = tracks[scenario.focal_track_id]
    check(focal.category == TrackCategory.FOCAL_TRACK, f"{name}: category of the focal track")
    check([s.timestep for s in focal.object_states] == list(range(110)), f"{name}: focal steps")
    for track in scenario.tracks:
        steps = [s.timestep for s in track.object_states]
        check(steps == sorted(set(steps)), f"{name}: steps of track {track.track_id}")
        seen = all(s.observed == (s.timestep < 50) for s in track.object_states)
        check(seen, f"{name}: column observed")
    return focal.object_states[49].position


def inside(areas, point):
    """Applies the even-odd rule to the rings of the drivable areas."""
    for area in areas:
        ring = area.xyz[:, :2]
        x, y = ring[:, 0] - point[0], ring[:, 1] - point[1]
        x2, y2 = np.roll(x, -1), np.roll(y, -1)
        spans = (y > 0) != (y2 > 0)
        crossing = x[spans] - y[spans] * (x2[spans] - x[spans]) / (y2[spans] - y[spans])
        if np.count_nonzero(crossing > 0) % 2:
            return True
    return False


def check_map(path, name):
    static = ArgoverseStaticMap.from_json(path)
    lanes = {i: static.vector_lane_segments[i] for i in static.get_scenario_lane_segment_ids()}
    check(len(lanes) > 15, f"{name}: {len(lanes)} lanes")
    for number, lane in lanes.items():
        center = static.get_lane_segment_centerline(number)
        check(np.isfinite(center).all() and len(center) == 10, f"{name}: center of lane {number}")
        check(len(static.get_lane_segment_polygon(number)) > 4, f"{name}: lane {number} is no area")
        for after in lane.successors:
            gap = lane.right_lane_boundary.xyz[-1] - lanes[after].right_lane_boundary.xyz[0]
            check(np.abs(gap).max() < 0.011, f"{name}: lanes {number} and {after} do not meet")
            check(number in lanes[after].predecessors, f"{name}: {after} does not know {number}")
        for side in (lane.left_neighbor_id, lane.right_neighbor_id):
            check(side is None or side in lanes, f"{name}: neighbor {side} of {number}")
    for crossing in static.get_scenario_ped_crossings():
        first, second = crossing.get_edges_2d()
        check(first.shape == second.shape == (2, 2), f"{name}: edges of a crossing")
    return static.get_scenario_vector_drivable_areas()


def main():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([TOOL, "write", folder, str(SCENES)], check=True)
        scenes = sorted(p for p in Path(folder).iterdir() if p.is_dir())
        check(len(scenes) == SCENES, f"{len(scenes)} folders")
        starts = 0
        for scene in scenes:
            at = check_scenario(scene / f"scenario_{scene.name}.parquet", scene.name)
            areas = check_map(scene / f"log_map_archive_{scene.name}.json", scene.name)
            starts += inside(areas, at)
        check(starts >= SCENES - 2, f"{starts} of {SCENES} focal vehicles are on the road")
    print(f"world.peer_av2: {checked} passed, 0 failed")


main()
