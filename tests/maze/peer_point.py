"""Compares the point agent of libbranchjepa with OGBench's environments in MuJoCo, step by step.

  BJ_BUILD=build/release python3 tests/maze/peer_point.py
  python3 tests/maze/peer_point.py record >tests/maze/point_steps.txt

The second form writes steps of MuJoCo for tests/maze/test_point.c, which does not need MuJoCo.
Both agents take the same action from the same position: on free floor, in soft contact with walls, edges
and corners, and on walks of several hundred steps in which each agent continues from its own position. The
largest distance between them is printed. By default MuJoCo's solver stops early, with errors of up to
1e-8 in rare contacts. It is compared with its tightest tolerance and then with its default. Maps, tasks,
success and teleporters are compared, too.
Exit codes: 0 success, 1 failure, 77 skipped because a package is not installed.
"""
import ctypes
import importlib.util
import os
import sys
import types

try:
    import gymnasium
    import mujoco
    import numpy as np
    # Imports only the mazes, because the whole package needs the libraries of its other domains.
    spec = importlib.util.find_spec("ogbench")
    if spec is None:
        raise ImportError("no module named 'ogbench'")
    sys.modules["ogbench"] = types.ModuleType("ogbench")
    sys.modules["ogbench"].__path__ = list(spec.submodule_search_locations)
    import ogbench.locomaze.maze  # its package registers the environments
except ImportError as error:
    print(f"skipped: {error}; scripts/install_peers.sh installs it")
    sys.exit(77)

STEP = 1e-12  # largest distance after one step in contact
WALK = 1e-11  # after a walk
LOOSE = 1e-6  # after a walk, with the solver's default tolerance
failed = 0
LIBRARY = None


def check(condition, what):
    global failed
    if not condition:
        failed += 1
        print("FAILED:", what)


class Maze(ctypes.Structure):  # the first fields of bj_maze
    _fields_ = [("name", ctypes.c_char_p), ("rows", ctypes.c_int), ("cols", ctypes.c_int),
                ("cells", ctypes.c_int), ("cell_at", ctypes.POINTER(ctypes.c_int32))]


class Ours:
    def __init__(self, name):
        self.maze = ctypes.POINTER(Maze)()
        check(LIBRARY.bj_maze_create(ctypes.byref(self.maze), name.encode(), None) == 0, name)
        self.xy = (ctypes.c_double * 2)()

    def step(self, xy, action):
        self.xy[:] = [float(v) for v in xy]
        LIBRARY.bj_point_step(self.xy, self.maze, (ctypes.c_double * 2)(*map(float, action)))
        return np.array(self.xy)

    def close(self):
        LIBRARY.bj_maze_free(self.maze)


def theirs(env, xy, action):
    """Computes one step of the agent without teleporters and noise."""
    env.set_xy(np.asarray(xy, float))
    return super(type(env), env).step(np.asarray(action, float))[0]


def wall_distance(walls, xy):
    i, j = np.nonzero(walls)
    dx = np.maximum(np.abs(xy[0] - (4 * j - 4)) - 2, 0)
    dy = np.maximum(np.abs(xy[1] - (4 * i - 4)) - 2, 0)
    return np.hypot(dx, dy).min()


def draw(walls, rng):
    """Returns a position, an action, and whether the step ends in contact."""
    free = np.argwhere(walls == 0)
    while True:
        i, j = free[rng.integers(len(free))]
        xy = np.array([4.0 * j - 4, 4.0 * i - 4]) + rng.uniform(-2, 2, 2)
        if wall_distance(walls, xy) >= 0.64:  # the data contains no closer positions
            break
    action = rng.uniform(-1, 1, 2) if rng.integers(4) else rng.choice([-1.0, 0.0, 1.0], 2)
    return xy, action, wall_distance(walls, xy + 0.2 * action) < 0.7


def record(rng, steps):
    print("# maze x y action_x action_y x y after the step, by peer_point.py record: MuJoCo",
          mujoco.__version__)
    for name in ("medium", "teleport"):
        env = gymnasium.make(f"pointmaze-{name}-v0").unwrapped
        env.reset(options=dict(task_id=1))
        written = 0
        while written < steps:
            xy, action, touching = draw(env.maze_map, rng)
            if touching or written == 0:
                print(name, *(f"{v:.17g}" for v in (*xy, *action, *theirs(env, xy, action))))
                written += 1


def walk(env, ours, free, rng, walks):
    """Returns the largest distance on walks of 300 steps, with each agent on its own."""
    apart = 0.0
    for _ in range(walks):
        i, j = free[rng.integers(len(free))]
        a = b = np.array([4.0 * j - 4, 4.0 * i - 4])
        for t in range(300):
            if t % 25 == 0:
                heading = rng.uniform(-1.5, 1.5, 2)
            action = np.clip(heading + rng.normal(0, 0.5, 2), -1, 1)
            a, b = ours.step(a, action), theirs(env, b, action)
            apart = max(apart, np.abs(a - b).max())
    return apart


def compare(name, rng, steps, walks):
    env = gymnasium.make(f"pointmaze-{name}-v0").unwrapped
    env.reset(options=dict(task_id=1))
    official = env.model.opt.tolerance, env.model.opt.ls_tolerance
    env.model.opt.tolerance, env.model.opt.ls_tolerance = 0, 1e-12
    ours = Ours(name)
    m, walls = ours.maze.contents, env.maze_map
    table = np.ctypeslib.as_array(m.cell_at, (m.rows, m.cols))
    check(table.shape == walls.shape and ((table < 0) == (walls == 1)).all(), f"map of {name}")

    worst = {"free": 0.0, "touching": 0.0}
    count = {"free": 0, "touching": 0}
    free = np.argwhere(walls == 0)
    while min(count.values()) < steps:
        xy, action, touching = draw(walls, rng)
        kind = "touching" if touching else "free"
        if count[kind] == steps:
            continue
        count[kind] += 1
        gap = np.abs(ours.step(xy, action) - theirs(env, xy, action)).max()
        worst[kind] = max(worst[kind], gap)
    check(worst["free"] == 0, f"{name}: {worst['free']:g} apart on free floor")
    check(worst["touching"] <= STEP, f"{name}: {worst['touching']:g} apart in contact")

    apart = walk(env, ours, free, rng, walks)
    check(apart <= WALK, f"{name}: {apart:g} apart after walks")
    env.model.opt.tolerance, env.model.opt.ls_tolerance = official
    loose = walk(env, ours, free, rng, 1)
    check(loose <= LOOSE, f"{name}: {loose:g} apart after a walk with the official tolerance")
    print(f"{name}: free floor {worst['free']:.1e} ({count['free']} steps), contact "
          f"{worst['touching']:.1e} ({count['touching']}), {walks} walks of 300 steps {apart:.1e}, "
          f"one with the official tolerance {loose:.1e}")

    # Compares the numeric rules around a step.
    check(env._goal_tol == 1.0 and env._noise * env._maze_unit / 4 == 1.0, "noise and goal radius")
    check(gymnasium.spec(f"pointmaze-{name}-v0").max_episode_steps == 1000, "step limit")
    if env._teleport_info:
        check(env._teleport_info["teleport_radius"] * 1.5 == 1.5, "trigger of teleporters")
        # observed at the entrance, then moved immediately
        x, y = env._teleport_info["teleport_in_xys"][0]
        env.set_xy(np.array([x, y + 1.69]))
        seen, *_ = env.step(np.array([0.0, -1.0]))
        check(np.hypot(*(seen - [x, y])) < 1.5, "the observation is taken before a teleport")
        check(any(np.allclose(env.get_xy(), out)
                  for out in env._teleport_info["teleport_out_xys"]), "teleported")
    ours.close()
    env.close()


if sys.argv[1:] == ["record"]:
    record(np.random.default_rng(7), 40)
    sys.exit(0)
LIBRARY = ctypes.CDLL(os.path.join(os.environ["BJ_BUILD"], "libbranchjepa.so"))
for number, name in enumerate(["medium", "large", "giant", "teleport"]):
    compare(name, np.random.default_rng(number), steps=250, walks=3)
sys.exit(1 if failed else 0)
