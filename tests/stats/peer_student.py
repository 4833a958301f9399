"""Compares quantiles of Student's t with SciPy, to 1e-10, and a paired interval with scipy.stats.

  TEST_STUDENT=path/of/test_stats_student python3 tests/stats/peer_student.py

SciPy's quantiles lose digits near p = .5 (p = .4999999, 4 degrees: error 4e-4 in 1.17), so values within
.01 of it are tested only with the closed forms of test_student.c.
Exit codes: 0 success, 1 failure, 77 skipped because a package is not installed.
"""
import csv
import io
import math
import os
import random
import subprocess
import sys

try:
    import scipy
    from scipy import stats
except ImportError:
    print("skipped: the Python package scipy is not installed")
    sys.exit(77)

TOOL = os.environ.get("TEST_STUDENT") or os.path.join(
    os.environ["BJ_BUILD"], "tests", "test_stats_student")
ROOT = os.environ.get("BJ_ROOT") or os.path.join(os.path.dirname(__file__), "..", "..")


def compare_quantiles():
    rng = random.Random(7)
    cases = [(p, v)
             for v in [1, 1.5, 2, 3, 4, 4.5, 5, 7, 9, 10, 19, 30, 99.5, 1e3, 1e4, 1e5, 199999,
                       200001, 1e6, 1e7, 1e9, 1e12]
             for p in [1e-12, 1e-6, .001, .005, .025, .05, .1, .25, .4, .6, .9, .975, .995, .9999,
                       1 - 1e-9]]
    while len(cases) < 2000:
        p = rng.random()
        if abs(p - .5) > .01:
            cases.append((p, 10 ** rng.uniform(0, 8)))
    text = "".join("%r %r\n" % case for case in cases)
    out = subprocess.run([TOOL, "quantiles"], input=text, stdout=subprocess.PIPE, text=True,
                         check=True).stdout.split()
    assert len(out) == len(cases), (len(out), len(cases))
    worst, where = 0, None
    for (p, v), found in zip(cases, out):
        wanted = float(stats.t.ppf(p, v))
        error = abs(float(found) / wanted - 1)
        if not error <= worst:
            worst, where = error, (p, v, found, wanted)
    print("quantiles: %d, largest relative error %.2e at %s" % (len(cases), worst, where))
    return worst <= 1e-10


def compare_interval():
    """Compares `bjepa compare` with scipy.stats.ttest_rel on the paper's seeds."""
    path = os.path.join(ROOT, "data", "paper", "av2_seeds.csv")
    values = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            key = row["arm"], row["metric"]
            values.setdefault(key, {})[int(row["seed"])] = float(row["value"])
    ok, count = True, 0
    for level in (.5, .9, .95, .999):
        text = subprocess.run([os.environ["BJEPA"], "compare", path, "--a", "fullset", "--b", "mdn",
                               "--level", repr(level), "--format", "csv"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, check=True).stdout
        for row in csv.DictReader(io.StringIO(text)):
            a, b = values["fullset", row["metric"]], values["mdn", row["metric"]]
            if len(set(a[s] - b[s] for s in a)) == 1:
                continue                                # the spread is zero, and SciPy divides by zero
            test = stats.ttest_rel([a[s] for s in sorted(a)], [b[s] for s in sorted(a)])
            interval = test.confidence_interval(level)
            for found, wanted in ((row["low"], interval.low), (row["high"], interval.high)):
                count += 1
                if not math.isclose(float(found), wanted, rel_tol=1e-9):
                    print("FAILED:", row["metric"], level, "found", found, "expected", wanted)
                    ok = False
    print("intervals: %d ends compared" % count)
    return ok and count >= 40


results = [compare_quantiles(), compare_interval() if os.environ.get("BJEPA") else True]
print("SciPy", scipy.__version__, "passed" if all(results) else "FAILED")
sys.exit(0 if all(results) else 1)
