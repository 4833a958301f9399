#!/usr/bin/env python3
"""Tests bjepa parity on new golden files with a new seed in every run, and with planted errors.

BJEPA is the path of the program. The script writes golden files of the sizes `small` and `odd`, and one of
the paper's size, to a temporary folder, and `bjepa parity` must accept all of them (exit code 0). Then one
number is changed in one group of tensors at a time, and `bjepa parity` must fail (exit code 4).

Exit codes: 0 success, 1 failure, 77 skipped because PyTorch is not installed.
"""
from __future__ import annotations

import argparse
import os
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))
try:
    from reference import files
except ImportError as error:
    print(f"skipped: {error}; this test needs the Python package torch")
    sys.exit(77)

SETS = (("small", "all"), ("odd", "all"), ("paper", "fullset"))
PLANTED = ("o.y", "o.u", "l.total", "g.decoder.2.weight", "g.encoder.gru.weight_hh_l0", "m.traj_es",
           "s.encoder.proj.0.weight", "st.gru.weight_ih_l0")


def parity(binary: str, path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([binary, "parity", str(path)], capture_output=True, text=True)


def plant(source: Path, copy: Path, name: str) -> None:
    """Changes the largest entry of one tensor by a tenth."""
    tensors, metadata = files.load(source)
    flat = tensors[name].flatten()
    flat[flat.abs().argmax()] *= 1.1
    files.save(copy, tensors | {name: flat.reshape(tensors[name].shape)}, metadata)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**9),
                        help="repeat a run (default: a new one)")
    args = parser.parse_args()
    binary = os.environ.get("BJEPA")
    if not binary:
        parser.error("the environment variable BJEPA must name the bjepa binary")
    print(f"seed {args.seed}")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for sizes, cases in SETS:
            out = Path(folder) / sizes
            subprocess.run([sys.executable, str(SCRIPTS / "make_fixtures.py"), str(out), "--sizes",
                            sizes, "--seed", str(args.seed), "--cases", cases], check=True,
                           stdout=subprocess.DEVNULL)
            done = parity(binary, out)
            print(f"{sizes}: {len(list(out.iterdir()))} files, exit {done.returncode}, expected 0")
            if done.returncode != 0:
                print(done.stdout + done.stderr)
                failed += 1
        for name in PLANTED:
            copy = Path(folder) / "planted.safetensors"
            plant(Path(folder) / "small" / "fullset.safetensors", copy, name)
            done = parity(binary, copy)
            print(f"changed number in {name}: exit {done.returncode}, expected 4")
            failed += done.returncode != 4
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
