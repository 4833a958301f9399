#!/usr/bin/env python3
"""Writes tests/golden/regularizers.safetensors: SIGReg and VICReg of small batches, in float64.

    make_regularizer_golden.py OUT.safetensors [--seed N]

For every case C
    C.x                    (B,D) embeddings
    C.directions           (S,D) SIGReg's directions of (direction_seed, step), see the metadata
    C.TERM, C.d.TERM       value (1) and gradient (B,D) by autograd of each term: sigreg,
                           vicreg_variance, vicreg_covariance
The same seed gives the same file.
"""
from __future__ import annotations

import argparse
from pathlib import Path

import torch
from torch import Tensor

from reference import files, regularizers

GAMMA, DIRECTION_SEED, STEP = 0.9, 12345678901234567890, 7

# scenes, width, slices, with complete and partial vectors, blocks and shards
SIZES = {"gaussian": (19, 13, 11), "collapsed": (19, 13, 11), "correlated": (21, 9, 40),
         "wide": (9, 6, 8), "two": (2, 5, 3), "shards": (83, 5, 33)}


def draw(name: str, scenes: int, width: int, rng: torch.Generator) -> Tensor:
    x = torch.randn(scenes, width, generator=rng, dtype=torch.float64)
    if name == "collapsed":       # far from zero with a small spread
        return 0.02 * x + 2.5 * torch.randn(width, generator=rng, dtype=torch.float64)
    if name == "correlated":      # a skewed distribution of low rank
        mix = torch.randn(width, 3, generator=rng, dtype=torch.float64)
        return (x[:, :3].exp() @ mix.T) / 2 + 0.1 * x
    return 8 * x if name == "wide" else x


def make(seed: int) -> tuple[dict[str, Tensor], dict[str, str]]:
    rng = torch.Generator().manual_seed(seed)
    tensors: dict[str, Tensor] = {}
    for name, (scenes, width, slices) in SIZES.items():
        x = draw(name, scenes, width, rng).float().double()    # numbers that float32 can represent
        x.requires_grad_()
        directions = regularizers.directions(DIRECTION_SEED, STEP, slices, width)
        terms = dict(sigreg=regularizers.sigreg(x, directions),
                     vicreg_variance=regularizers.vicreg_variance(x, GAMMA),
                     vicreg_covariance=regularizers.vicreg_covariance(x))
        tensors |= {f"{name}.x": x, f"{name}.directions": directions}
        for term, value in terms.items():
            tensors[f"{name}.{term}"] = value[None]
            tensors[f"{name}.d.{term}"] = torch.autograd.grad(value, x)[0]
    return tensors, {"gamma": str(GAMMA), "direction_seed": str(DIRECTION_SEED), "step": str(STEP),
                     "seed": str(seed), "cases": ",".join(SIZES)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the fixture of the regularizers.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    files.save(args.out, *make(args.seed))
    print(f"{args.out}  {args.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
