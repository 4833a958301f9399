#!/usr/bin/env python3
"""torture.py - disturbs bjepa in every way that docs/RELIABILITY.md promises it survives.

  tests/torture/torture.py --bjepa build/release/bjepa [--sanitized build/asan/bjepa] [--n N]
                           [--seed S] [--only NAME,...]

Prints one table: attempts and survivors of every attack. N multiplies the number of attempts. The
seed selects moments, calls and mutations. Exit code 0: everything survived; 1: something did not;
77: the fault injector cannot be built.
"""
import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import attacks  # noqa: E402
import damage  # noqa: E402
from commands import Lab  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def build_shim(folder):
    shim = os.path.join(folder, "faults.so")
    compiler = os.environ.get("CC", "cc")
    done = subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", shim,
                           f"{ROOT}/tests/faults/faults.c", "-ldl"])
    return shim if done.returncode == 0 else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bjepa", required=True)
    parser.add_argument("--sanitized", help="build for mutated files (default: --bjepa)")
    parser.add_argument("--n", type=float, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60, help="limit of one attack, times N")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    bjepa = os.path.abspath(options.bjepa)
    sanitized = os.path.abspath(options.sanitized) if options.sanitized else bjepa

    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = tempfile.mkdtemp(prefix="bjepa-torture.", dir=memory)
    try:
        return torture(folder, bjepa, sanitized, options)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def torture(folder, bjepa, sanitized, options):
    shim = build_shim(folder)
    if not shim:
        print("torture: skipped, because tests/faults/faults.c cannot be built")
        return 77
    lab = Lab(bjepa, folder)

    def times(count):
        return max(1, round(count * options.n))

    def calls(action, ops, per_command):
        return lambda t, r: attacks.calls(lab, t, action, ops, shim, r, times(per_command))

    both = f"{attacks.CHANGES},{attacks.READS}"
    plan = {
        "kill-random": ("SIGKILL at a random moment",
                        lambda t, r: attacks.signals(lab, t, signal.SIGKILL, r, times(120))),
        "term-random": ("SIGTERM at a random moment",
                        lambda t, r: attacks.signals(lab, t, signal.SIGTERM, r, times(80))),
        "kill-call": ("SIGKILL at the n-th call that changes the disk", calls("KILL", attacks.CHANGES, 10)),
        "eio": ("EIO at the n-th I/O call", calls("EIO", both, 10)),
        "enospc": ("ENOSPC at the n-th I/O call", calls("ENOSPC", attacks.CHANGES, 6)),
        "short": ("short read or write", calls("SHORT", "read,write", 6)),
        "memory": ("failure of the n-th allocation", calls("EIO", "alloc", 20)),
        "disk": ("full disk", lambda t, r: attacks.full_disk(lab, t, r, times(5))),
        "mutation": ("mutated file" + (", sanitizers" if sanitized != bjepa else ", no sanitizers"),
                     lambda t, r: damage.mutations(lab, t, sanitized, r, times(400))),
        "rot": ("one bit of a cached scene", lambda t, r: damage.rotten_scenes(lab, t, r, times(100))),
        "locked": ("one bit of a locked file", lambda t, r: damage.locked_bits(lab, t, r, times(60))),
        "gallery": ("one bit of a gallery", lambda t, r: damage.gallery_bits(lab, t, r, times(60))),
        "edit": ("edited lock", lambda t, r: damage.edited_locks(lab, t)),
        "swap": ("checkpoint swapped during the locked pass",
                 lambda t, r: damage.swaps(lab, t, r, times(60))),
        "repeat": ("other threads, time zone, folder", lambda t, r: damage.determinism(lab, t)),
    }
    only = [name for name in options.only.split(",") if name]
    unknown = [name for name in only if name not in plan]
    if unknown:
        print(f"torture: unknown attack {unknown[0]}, expected one of: {', '.join(plan)}")
        return 2

    failed = False
    print(f"seed {options.seed}, N = {options.n:g}")
    print(f"{'attack':50} {'tried':>7} {'survived':>9} {'seconds':>8}", flush=True)
    for name, (title, attack) in plan.items():
        if only and name not in only:
            continue
        tally, start = attacks.Tally(title, options.seconds * options.n), time.time()
        # Every attack has its own generator, so --only repeats an attack exactly.
        if attack(tally, random.Random(f"{options.seed} {name}")) is False:
            print(f"{title:50} {'skipped':>7}", flush=True)
            continue
        print(f"{title:50} {tally.tried:7} {tally.survived:9} {time.time() - start:8.0f}", flush=True)
        for failure in tally.failures[:20]:
            print(f"    FAILED {failure}", flush=True)
        failed = failed or tally.survived < tally.tried or tally.tried == 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
