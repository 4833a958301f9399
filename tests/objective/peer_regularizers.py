#!/usr/bin/env python3
"""Compares SIGReg and VICReg of 256 embeddings of width 512 with PyTorch in double precision.

    TEST_REGULARIZERS=path/of/test_regularizers peer_regularizers.py

test_regularizers writes embeddings, directions, terms and the gradient of the weighted total. This
script recomputes them with scripts/reference and autograd, and draws the directions from seed and
step itself. Two more comparisons, with other directions and with another target deviation, must
fail.

Exit codes: 0 equal, 1 different, 77 skipped because PyTorch or safetensors is not installed.
"""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

try:
    import torch
    from safetensors import safe_open
except ImportError as error:
    print(f"skipped: {error}; this test needs the Python packages torch and safetensors")
    sys.exit(77)

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from reference import regularizers  # noqa: E402

TERMS = ("sigreg", "vicreg_variance", "vicreg_covariance")
TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-9}    # relative to the largest entry


def compare(name: str, tensors: dict, meta: dict, step: int, gamma: float) -> bool:
    """Prints the largest relative errors. Returns True if all are within the tolerance."""
    tolerance = TOLERANCE[tensors["x"].dtype]
    x = tensors["x"].double().requires_grad_()
    directions = regularizers.directions(int(meta["seed"]), step, *tensors["directions"].shape)
    value = torch.stack([regularizers.sigreg(x, directions),
                         regularizers.vicreg_variance(x, gamma),
                         regularizers.vicreg_covariance(x)])
    weight = torch.tensor([float(meta[term]) for term in TERMS], dtype=torch.float64)
    (weight @ value).backward()
    errors = {"directions": (tensors["directions"] - directions).abs().max(),
              "dx": (tensors["dx"] - x.grad).abs().max() / x.grad.abs().max()}
    for i, term in enumerate(TERMS):
        errors[term] = ((tensors["terms"][0, i] - value[i]) / value[i]).abs().detach()
    print(f"{name}: " + "  ".join(f"{k} {float(v):.1e}" for k, v in errors.items()))
    return all(float(v) <= tolerance for v in errors.values())


def main() -> int:
    tool = os.environ.get("TEST_REGULARIZERS")
    if not tool:
        print("the environment variable TEST_REGULARIZERS must name the program", file=sys.stderr)
        return 1
    torch.set_num_threads(1)
    subprocess.run([tool, "export", "case.safetensors"], check=True)
    with safe_open("case.safetensors", "pt") as file:
        tensors = {k: file.get_tensor(k) for k in file.keys()}
        meta = file.metadata()
    step, gamma = int(meta["step"]), float(meta["gamma"])
    good = compare("equal", tensors, meta, step, gamma)
    good &= not compare("other step, must differ", tensors, meta, step + 1, gamma)
    good &= not compare("other gamma, must differ", tensors, meta, step, gamma + 0.01)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
