#!/usr/bin/env python3
"""Runs the commands and programs of docs/PYTORCH.md and checks that PyTorch and bjepa agree.

Extracts the code blocks of the page and runs them in order, in the scratch folder. A small training run
and a cache take the place of the reader's files. Exit codes: 0 success, 1 failure, 77 skipped because a
package is not installed.
"""
from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

try:
    import safetensors    # noqa: F401
    import torch          # noqa: F401
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)

ROOT, BJEPA = Path(os.environ["BJ_ROOT"]), os.environ["BJEPA"]
TOLERANCE = 1e-4
SIZES = ("embed=8", "heads=2", "latent=8", "token_hidden=8", "proj_hidden=8", "atom_hidden=8",
         "router_hidden=8", "decoder_hidden=8")


def bjepa(*arguments: str) -> None:
    subprocess.run([BJEPA, *arguments], check=True, stdout=subprocess.DEVNULL)


def prepare(arm: str) -> None:
    """Creates val.bjc, and a run of a small model in the folder run."""
    if not Path("val.bjc").exists():
        bjepa("simulate", "--cache", "val.bjc", "--scenes", "40", "--seed", "3", "--split", "dev",
              "--jobs", "1", "--quiet")
    settings = [f"model.{size}" for size in SIZES]
    settings += ["train.epochs=1", "train.warmup=0", "train.batch=32"]
    bjepa("train", "--data", "world:7:64", "--dev", "val.bjc", "--arm", arm, "--out", "run",
          "--threads", "1", "--quiet", *(word for each in settings for word in ("--set", each)))


def blocks() -> list[tuple[str, str]]:
    """Returns the language and the text of every code block of the page."""
    page = (ROOT / "docs" / "PYTORCH.md").read_text()
    return re.findall(r"^```(sh|python)\n(.*?)^```$", page, re.M | re.S)


def run_block(language: str, text: str) -> str:
    if language == "sh":
        command = ["bash", "-ec", f'bjepa() {{ "{BJEPA}" "$@"; }}\n{text}']
    else:
        Path("program.py").write_text(text)
        command = [sys.executable, "program.py"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"FAILED: exit code {done.returncode} of this block:\n{text}")
    return done.stdout


def main() -> int:
    if not Path("scripts").exists():
        Path("scripts").symlink_to(ROOT / "scripts")
    failed = 0
    for arm in ("fullset", "uniform", "point", "outputonly"):
        subprocess.run(["rm", "-rf", "run", "changed.safetensors"], check=True)
        prepare(arm)
        found = blocks()
        if [language for language, _ in found] != ["sh", "python", "python", "sh"]:
            sys.exit("FAILED: docs/PYTORCH.md has other code blocks than this test expects")
        if arm == "outputonly":    # has no tensor decoder.2.bias, only the first program applies
            found = found[:2]
        output = [run_block(*block) for block in found]
        differences = [float(line.split()[-1]) for line in output[1].splitlines()]
        print(f"{arm}: largest differences {differences}")
        failed += not (len(differences) == 2 and max(differences) <= TOLERANCE)
        if len(found) > 2:    # the changed bias must change the trajectories and not the weights
            before, after = (json.load(open(name)) for name in ("predicted.json", "changed.json"))
            weights = zip(before["weights"], after["weights"], strict=True)
            failed += max(abs(a - b) for a, b in weights) > TOLERANCE
            failed += before["trajectories"] == after["trajectories"]
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
