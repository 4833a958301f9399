#!/usr/bin/env python3
"""Write golden fixtures for mixed precision: float64 gradients and the error of PyTorch's autocast.

A rounded operand can switch a rectifier, which changes a gradient by more than rounding. Such events
differ between programs, so errors are compared as root mean squares over several draws of weights
and scenes, one file each.

The files have the format of make_fixtures.py without the groups s, st and m, and one more group:
    e.*   error of each gradient of PyTorch's bf16 autocast on the CPU, relative to the float64
          gradient: |g_autocast - g| / |g|
Autocast covers the layers. Latent normalization and losses are in float32, as in the paper. The
error depends on the PyTorch version and on the processor, so the metadata contains both.
"""
from __future__ import annotations

import argparse
import platform
import sys
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

import make_fixtures
from make_fixtures import Scale, Spec
from reference import files, modules
from reference.network import Prediction, future_view, unit
from reference.objectives import OBJECTIVES, Case, Goal, total
from reference.scenes import Batch
from reference.sizes import Sizes
from reference.training import State, gradients

SCALE = Scale(Sizes(obs=4, fut=10, neighbors=2, polylines=3, points=2, embed=32, heads=4,
                    token_hidden=48, latent=40, proj_hidden=40, atoms=3, atom_hidden=40,
                    router_hidden=32, decoder_hidden=40, trunk=44), 53, 256, 256, 1)
DRAWS = 3   # files per case, with weights and scenes of their own
# Objectives with a hard winner are left out: rounding can change the winner of a scene.
CASES = {"fullset": Spec(), "softwta": Spec(Goal("softwta"), reach=12.0)}


def autocast_gradients(state: State, batch: Batch, sizes: Sizes, goal: Goal) -> dict[str, Tensor]:
    net = modules.build(sizes, "branch")
    net.load_state_dict({name: value.float() for name, value in state.params.items()})
    target = modules.SceneEncoder(sizes).requires_grad_(False)
    target.load_state_dict({name: value.float() for name, value in state.target.items()})
    batch = {key: value.float() if value.is_floating_point() else value
             for key, value in batch.items()}

    def low(layer, *inputs: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return layer(*inputs).float()

    context = low(net.encoder, *(batch[key] for key in modules.INPUTS))
    atoms = unit(torch.stack([low(atom, context) for atom in net.atoms], dim=1))
    prediction = Prediction(context, atoms, low(net.router, context), low(net.decode, atoms))
    view = future_view(batch, sizes.dt)
    latent = unit(low(target, *(view[key] for key in modules.INPUTS)))
    case = Case(prediction, latent, batch["future"], low(net.decode, latent), {})
    total(OBJECTIVES[goal.kind](goal, case)).backward()
    return {name: value.grad.double() for name, value in net.named_parameters()}


def make_case(name: str, spec: Spec, seed: int) -> tuple[dict[str, Tensor], dict[str, str]]:
    sizes = SCALE.sizes
    state, batch = make_fixtures.draw(name, spec, sizes, SCALE.scenes, "mixed", seed)
    result, grads = gradients(state, batch, sizes, spec.goal)
    low = autocast_gradients(state, batch, sizes, spec.goal)
    errors = {key: ((low[key] - g).norm() / g.norm())[None] for key, g in grads.items()}
    groups = dict(w=dict(state.params), t=dict(state.target), x=dict(batch), g=grads, e=errors,
                  l={"total": result.loss[None]})
    tensors = {f"{group}.{key}": value.to(torch.uint8) if value.dtype == torch.bool
               else value.detach().float()
               for group, members in groups.items() for key, value in members.items()}
    metadata = {"case": name, "model": spec.model, "scales": spec.scales, "steps": "1",
                "seed": str(seed), "torch": torch.__version__, "machine": platform.machine(),
                "bf16": torch.backends.cpu.get_cpu_capability(), **sizes.as_metadata(),
                **spec.goal.as_metadata(), **replace(spec.optim).as_metadata()}
    return tensors, metadata


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path, help="directory to write to; made when missing")
    parser.add_argument("--seed", type=int, default=0, help="same seed, same draws (default 0)")
    parser.add_argument("--cases", default=",".join(CASES), metavar="A,B",
                        help="comma-separated cases (default: all)")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.cases.split(","):
        spec = CASES[name]
        for draw in range(DRAWS):
            tensors, metadata = make_case(name, spec, DRAWS * args.seed + draw)
            files.save(args.out / f"{name}_{draw}.safetensors", tensors, metadata)
            worst = max((float(value), key) for key, value in tensors.items()
                        if key.startswith("e."))
            print(f"{name} {draw}: largest error of autocast {worst[0]:.3g} ({worst[1]})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
