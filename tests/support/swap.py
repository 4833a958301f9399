"""Exchanges a checkpoint while a campaign is evaluated. No evaluation may publish other numbers.

    swap.py BJEPA CAMPAIGN ATTEMPTS [SEED]

CAMPAIGN is locked and has the arm fullset with the seeds 0 and 1. In every attempt the checkpoint of
seed 0 is replaced by that of seed 1 for a moment, either by exchanging the two folders, which leaves
inode, size and times of the files as they were, or by writing the other bytes into the files and
restoring their modification times.
"""
import collections
import ctypes
import hashlib
import os
import random
import shutil
import subprocess
import sys
import time

bjepa, campaign, attempts = sys.argv[1], sys.argv[2], int(sys.argv[3])
draw = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
libc = ctypes.CDLL(None, use_errno=True)
FOLDERS = [f"{campaign}/runs/fullset/seed-{seed}/ckpt" for seed in (0, 1)]
FILES = ("best/model.safetensors", "best/state.safetensors")
TABLE = f"{campaign}/locked/seed_table.json"


def read(path):
    with open(path, "rb") as f:
        return f.read()


def exchange(a, b):  # renameat2 with RENAME_EXCHANGE
    if libc.renameat2(-100, a.encode(), -100, b.encode(), 2):
        raise OSError(ctypes.get_errno(), "renameat2")


def write(content, times):
    for name in FILES:
        with open(f"{FOLDERS[0]}/{name}", "r+b") as f:
            f.write(content[name])
            f.truncate()
        os.utime(f"{FOLDERS[0]}/{name}", ns=times[name])


def evaluate(swap=None):
    """Returns the exit code and the digest of the published table, or None."""
    shutil.rmtree(f"{campaign}/locked", ignore_errors=True)
    process = subprocess.Popen([bjepa, "lock", "run", campaign, "-q", "--threads", "1"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if swap:
        swap()
    error = process.communicate(timeout=120)[1].decode()
    published = hashlib.sha256(read(TABLE)).hexdigest() if os.path.exists(TABLE) else None
    return process.returncode, published, error


start = time.time()
code, right, error = evaluate()
length = time.time() - start
assert code == 0 and right, error
good, other = ({name: read(f"{folder}/{name}") for name in FILES} for folder in FOLDERS)
times = {}
for name in FILES:
    info = os.stat(f"{FOLDERS[0]}/{name}")
    times[name] = (info.st_atime_ns, info.st_mtime_ns)


def by_folder():
    time.sleep(draw.uniform(0, length))
    exchange(*FOLDERS)
    time.sleep(draw.uniform(0, length / 4))
    exchange(*FOLDERS)


def by_bytes():
    time.sleep(draw.uniform(0, length))
    write(other, times)
    time.sleep(draw.uniform(0, length / 4))
    write(good, times)


results = collections.Counter()
for attempt in range(attempts):
    code, published, error = evaluate(by_folder if attempt % 2 else by_bytes)
    if published is None:
        assert code in (3, 4, 5), (code, error)
        results["rejected"] += 1
    else:
        results["right" if published == right else "wrong"] += 1
print(f"{attempts} swaps: {results['rejected']} rejected, {results['right']} published the right numbers, "
      f"{results['wrong']} published other numbers")
sys.exit(results["wrong"] != 0 or sum(results.values()) != attempts)
