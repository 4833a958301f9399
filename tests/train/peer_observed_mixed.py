#!/usr/bin/env python3
"""Compares gradients in mixed precision of the maze models with float64 and with PyTorch's autocast.

    TEST_OBSERVED=path/of/test_observed peer_observed_mixed.py

For every gradient tensor, the root mean square over DRAWS draws of our error relative to float64 must be
at most LIMIT times that of bf16 autocast. Batches contain only transitions that are clear of decision
boundaries, because a rectifier or a winner that switches changes a gradient by more than rounding
(scripts/make_mixed_golden.py, which covers the arms of scenes, defines the clearances).

Exit codes: 0 within the limit, 1 above it, 77 skipped because PyTorch or safetensors is not installed.
"""
from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

import peer_observed as peer    # exits with 77 if PyTorch is not installed
import torch
import torch.nn.functional as F
from safetensors import safe_open

from make_mixed_golden import WINNER_CLEARANCE, Rectifiers, error_of

# maze-branch, maze-mdn, maze-standard, maze-fused, maze-variational, maze-codebook, and images
CASES = ("floors", "mdn", "standard", "fused", "variational", "codebook", "image")
BATCH, DRAWS, LIMIT = 48, 12, 1.5


def export(tool: str, case: str, seed: int, rows: list[int], path: Path):
    subprocess.run([tool, "mixed", case, str(seed), ",".join(map(str, rows)), path], check=True)
    with safe_open(path, "pt") as file:
        return {k: file.get_tensor(k).double() for k in file.keys()}, file.metadata()


def evaluate(tensors, meta, rows, dtype, watch=nullcontext()):
    """Returns the loss, the trained weights and the distances (B,K) to the target for these rows. The target
    has no gradient and is not watched."""
    of = lambda prefix: {k[len(prefix):]: v.clone().to(dtype) for k, v in tensors.items()
                         if k.startswith(prefix)}
    w, target, x = of("w."), of("t."), of("x.")
    mean, scale = w["input.mean"], w["input.scale"]
    trained = {k: v.requires_grad_() for k, v in w.items() if f"g.{k}" in tensors}
    with torch.no_grad():
        z = F.normalize(peer.encode(x["next"][rows], target, meta, mean, scale), dim=-1)
    action = x["action"][rows] if "action" in x else None
    eps = x["eps0"].repeat(len(rows) // BATCH, 1) if "eps0" in x else None
    with watch:
        context = peer.encode(x["state"][rows], w, meta, mean, scale)
        part, out = peer.loss_of(context, action, z, w, meta, eps, 0)
    away = (out["atoms"].unflatten(0, (len(rows), -1)) - z[:, None]).norm(dim=-1)
    return part["total"], trained, away.detach().double()


def margin_of(away):
    nearest = away.topk(2, -1, largest=False).values
    return nearest[:, 0], nearest[:, 1] - nearest[:, 0]


def clear_rows(tensors, meta) -> list[int]:
    """Returns a clear transition for every position of the batch. Noise depends on the position."""
    count = len(tensors["x.state"])
    rows = torch.arange(count)
    exact, rounded = Rectifiers(), Rectifiers()
    with torch.no_grad():
        _, _, away = evaluate(tensors, meta, rows, torch.float64, exact)
        _, _, moved = evaluate(tensors, meta, rows, torch.float32, rounded)
    clear = exact.clear(rounded)
    if meta["objective"] == "specialization":
        nearest, margin = margin_of(away)
        clear &= (margin >= WINNER_CLEARANCE * nearest) & \
            ((margin_of(moved)[1] - margin).abs() <= margin / 2)
    clear = clear.unflatten(0, (-1, BATCH))
    if not clear.any(0).all():
        raise RuntimeError("a position of the batch has no clear transition")
    first = clear.int().argmax(0)
    return (first * BATCH + torch.arange(BATCH)).tolist()


def gradients(tensors, meta, rows, dtype):
    loss, trained, _ = evaluate(tensors, meta, torch.tensor(rows), dtype)
    loss.backward()
    return {k: v.grad.double() for k, v in trained.items()}


def main() -> int:
    tool, failed = os.environ.get("TEST_OBSERVED"), 0
    if not tool:
        print("the environment variable TEST_OBSERVED must name the program", file=sys.stderr)
        return 1
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.safetensors"
        for case in CASES:
            ours, theirs = {}, {}
            for seed in range(DRAWS):
                tensors, meta = export(tool, case, seed, list(range(BATCH)), path)
                rows = clear_rows(tensors, meta)
                tensors, meta = export(tool, case, seed, rows, path)
                expected = gradients(tensors, meta, rows, torch.float64)
                low = gradients(tensors, meta, rows, torch.float32)
                for name, g in expected.items():
                    ours[name] = ours.get(name, 0) + error_of(tensors[f"g.{name}"], g) ** 2
                    theirs[name] = theirs.get(name, 0) + error_of(low[name], g) ** 2
            ratios = {name: float((ours[name] / theirs[name]).sqrt()) for name in ours}
            worst = max(ratios, key=ratios.get)
            print(f"{case}: at most {ratios[worst]:.2f} times the error of autocast ({worst})")
            failed += sum(not ratio <= LIMIT for ratio in ratios.values())
            failed += not min(float(v) for v in ours.values()) > 1e-8    # operands are rounded
    print(f"{failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
