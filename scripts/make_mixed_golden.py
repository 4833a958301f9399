#!/usr/bin/env python3
"""Write golden fixtures for mixed precision: float64 gradients and the error of PyTorch's autocast.

A rounded operand can switch a rectifier or change the nearest branch of a scene. Either changes a
gradient by more than rounding, and such events differ between programs, so an error would depend on luck.
The cases therefore contain only scenes that are clear of these decisions:
    KINK_CLEARANCE     smallest input of a rectifier, relative to the root mean square of its row
    KINK_FACTOR        smallest input of a rectifier, relative to the largest change that autocast makes in
                       its row
    WINNER_CLEARANCE   difference between the distances of the two nearest branches, relative to the smaller
                       one, in objectives with a hard winner
A scene is also left out if autocast changes the margin of its winner by more than half. Errors are compared
as root mean squares over several draws of weights and scenes, one file each, because they vary from draw to
draw. They vary most for mixtures with learned scales, where a few scenes dominate the gradient. The golden files
have DRAWS draws, so their learned scales are widened. tests/verify/peer_mixed.py keeps the arms' own scales and
makes more draws.

The files have the format of make_fixtures.py without the groups s, st and m, and one more group:
    e.*   error of each gradient of PyTorch's bf16 autocast on the CPU, relative to the float64
          gradient: |g_autocast - g| / |g|
Autocast covers the layers. Latent normalization and losses are in float32, as in the paper. The
error depends on the PyTorch version and on the processor, so the metadata contains both.
"""
from __future__ import annotations

import argparse
import hashlib
import math
import platform
import sys
from dataclasses import replace
from pathlib import Path
from typing import Mapping

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

import make_fixtures
from make_fixtures import Scale, Spec
from reference import files, modules
from reference.network import Prediction, future_view, predict, unit
from reference.objectives import (OBJECTIVES, Case, Goal, Terms, anchor_a, path_distance, regularize,
                                  total)
from reference.scenes import Batch
from reference.sizes import SEGMENT_STEPS, Sizes
from reference.training import State, evaluate, gradients

SCALE = Scale(Sizes(obs=4, fut=10, neighbors=2, polylines=3, points=2, embed=12, heads=2,
                    token_hidden=14, latent=14, proj_hidden=12, atoms=3, atom_hidden=12,
                    router_hidden=10, decoder_hidden=12, trunk=14), 33, 48, 48, 1)
DRAWS = 3                  # files per case, with weights and scenes of their own
KINK_CLEARANCE = 0.01
KINK_FACTOR = 3.0
WINNER_CLEARANCE = 0.05
LEAST_WINS = 0.1           # share of the scenes that each branch wins, in objectives with a hard winner
CANDIDATES = 60            # scenes that are drawn for each scene of a file
# Every arm of scenes has a case, except that the fixed mixtures share one and that `decoded_only`
# represents the other term weights.
CASES = {name: make_fixtures.CASES[name] for name in (
    "fullset", "uniform", "softwta", "sinkhorn", "specialization", "mdn_fixed", "mdn_global",
    "mdn_component", "decoded_only", "point", "outputonly", "anchor_a", "anchor_b",
    "anchor_b_point", "regularized")}
HARD = ("specialization", "sinkhorn")


def low(layer, *inputs: Tensor) -> Tensor:
    """Returns the output of layers in autocast."""
    with torch.autocast("cpu", torch.bfloat16):
        return layer(*inputs).float()


def low_prediction(net: nn.Module, batch: Batch) -> Prediction:
    context = low(net.encoder, *(batch[key] for key in modules.INPUTS))
    logits = low(net.router, context) if hasattr(net, "router") else context.new_zeros(len(context), 1)
    if isinstance(net, modules.BranchNet):
        atoms = unit(torch.stack([low(atom, context) for atom in net.atoms], dim=1))
        return Prediction(context, atoms, logits, low(net.decode, atoms))
    atom = unit(low(net.atom, context))
    hidden = low(lambda x: torch.relu(net.trunk(x)), atom)
    residual = torch.stack([low(head, hidden) for head in net.residual], dim=1)
    scale = net.step_scale * net.segment_scale.repeat_interleave(SEGMENT_STEPS, dim=1)
    residual = scale[..., None] * residual.unflatten(-1, (-1, 2))
    return Prediction(context, atom[:, None], logits, low(net.decode, atom)[:, None] + residual)


def low_terms(net: nn.Module, target: nn.Module, batch: Batch, sizes: Sizes, goal: Goal
              ) -> tuple[Terms, Prediction | None]:
    """Does what reference.training.evaluate does, with the layers in autocast."""
    view = [future_view(batch, sizes.dt)[key] for key in modules.INPUTS]
    if goal.kind == "anchor_a":
        raw = low(net.encoder, *view)
        latent = unit(raw)
        terms = anchor_a(goal, latent, low(net.decode, latent), batch["future"])
        return terms | regularize(goal, raw.double(), 0), None
    prediction = low_prediction(net, batch)
    latent = unit(low(target, *view))
    case = Case(prediction, latent, batch["future"], low(net.decode, latent),
                dict(net.named_parameters()))
    return OBJECTIVES[goal.kind](goal, case) | regularize(goal, prediction.context.double(), 0), prediction


def single(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.float() if value.is_floating_point() else value
            for name, value in tensors.items()}


def build_low(state: State, sizes: Sizes, spec: Spec) -> tuple[nn.Module, nn.Module]:
    """Returns the network and the target encoder in float32."""
    net = modules.build(sizes, spec.model, spec.scales)
    unused = net.load_state_dict(single(state.params), strict=False)
    assert not unused.unexpected_keys and (spec.model == "anchor" or not unused.missing_keys)
    target = modules.SceneEncoder(sizes).requires_grad_(False)
    if state.target:
        target.load_state_dict(single(state.target))
    return net, target


def autocast_gradients(state: State, batch: Batch, sizes: Sizes, spec: Spec) -> dict[str, Tensor]:
    net, target = build_low(state, sizes, spec)
    total(low_terms(net, target, single(batch), sizes, spec.goal)[0]).backward()
    return {name: value.grad.double() for name, value in net.named_parameters()
            if value.grad is not None}


class Rectifiers(TorchFunctionMode):
    """While active, records the inputs of all rectifiers."""

    def __init__(self) -> None:
        super().__init__()
        self.inputs: list[Tensor] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in (torch.relu, nn.functional.relu):
            self.inputs.append(args[0].detach().double())
        return func(*args, **(kwargs or {}))

    def clear(self, other: "Rectifiers") -> Tensor:
        """Returns which scenes (B) are clear. Rectifiers of batch statistics are ignored."""
        clear = []
        for x, y in zip(self.inputs, other.inputs, strict=True):
            if x.dim() > 1:
                size = x.square().mean(-1, keepdim=True).sqrt()
                moved = (y - x).abs().amax(-1, keepdim=True)
                clear.append((x.abs() >= torch.maximum(KINK_CLEARANCE * size, KINK_FACTOR * moved))
                             .flatten(1).all(1))
        return torch.stack(clear).all(0)


def margins(prediction: Prediction, batch: Batch, goal: Goal) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the nearest branch (B), its distance and how much farther away the next one is."""
    distance = path_distance(prediction.decoded.detach().double(), batch["future"][:, None], goal.beta)
    nearest = distance.topk(2, -1, largest=False)
    return nearest.indices[:, 0], nearest.values[:, 0], nearest.values[:, 1] - nearest.values[:, 0]


def clear_scenes(state: State, batch: Batch, sizes: Sizes, spec: Spec, count: int) -> Tensor | None:
    """Returns the indices of `count` clear scenes, or None if there are not enough."""
    with torch.no_grad(), Rectifiers() as exact:
        result = evaluate(state.params, state.target, batch, sizes, spec.goal)
    with torch.no_grad(), Rectifiers() as rounded:
        _, prediction = low_terms(*build_low(state, sizes, spec), single(batch), sizes, spec.goal)
    clear = exact.clear(rounded)
    wins = torch.tensor([count])
    if spec.goal.kind in HARD:
        winner, nearest, margin = margins(result.prediction, batch, spec.goal)
        _, _, moved = margins(prediction, batch, spec.goal)
        clear &= (margin >= WINNER_CLEARANCE * nearest) & ((moved - margin).abs() <= margin / 2)
        wins = torch.bincount(winner[clear.nonzero()[:count, 0]], minlength=sizes.atoms)
    chosen = clear.nonzero()[:count, 0]
    return chosen if len(chosen) == count and wins.min() >= LEAST_WINS * count else None


def widen_scales(state: State, goal: Goal) -> None:
    """Moves learned mixture scales from 0.25 and 2 to those of fixed mixtures, 0.5 and 4. With narrower ones
    some branches have a small share of few scenes, and the exponential amplifies the error of that share."""
    for name, scale in (("log_sz", goal.sigma_z / 0.25), ("log_sy", goal.sigma_y / 2.0)):
        if name in state.params:
            state.params[name] = (state.params[name] + math.log(scale)).float().double()


def move_futures(state: State, batch: Batch, sizes: Sizes) -> None:
    """Moves every future toward a branch, each branch in turn. Otherwise one branch wins most scenes."""
    with torch.no_grad():
        decoded = predict(state.params, batch, sizes).decoded
    scene = torch.arange(len(decoded))
    moved = torch.lerp(decoded[scene, scene % sizes.atoms], batch["future"], 0.25)
    batch["future"] = moved.float().double()


def draw(name: str, spec: Spec, sizes: Sizes, count: int, seed: int, wide: bool) -> tuple[State, Batch]:
    """Returns the first draw of this seed with enough clear scenes. `wide` widens learned scales."""
    for attempt in range(make_fixtures.ATTEMPTS):
        key = f"{seed}/mixed/{name}/{attempt}".encode()
        number = int.from_bytes(hashlib.sha256(key).digest()[:6], "big")
        state = make_fixtures.draw_weights(spec, sizes, torch.Generator().manual_seed(number))
        if wide:
            widen_scales(state, spec.goal)
        batch = make_fixtures.draw_batch(spec, sizes, CANDIDATES * count, number + 1)
        if spec.goal.kind in HARD:
            move_futures(state, batch, sizes)
        chosen = clear_scenes(state, batch, sizes, spec, count)
        if chosen is not None:
            return state, {key: value[chosen] for key, value in batch.items()}
    raise RuntimeError(f"{name}: no draw in {make_fixtures.ATTEMPTS} is clear of decision boundaries")


def error_of(found: Tensor, expected: Tensor) -> Tensor:
    """Returns |found - expected| / |expected|, or 0 if both are zero."""
    if not expected.any():    # stage A sees no neighbors
        assert not found.any()
        return expected.sum()
    return (found - expected).norm() / expected.norm()


def make_case(name: str, spec: Spec, seed: int, wide: bool) -> tuple[dict[str, Tensor], dict[str, str]]:
    sizes = replace(SCALE.sizes, **spec.sizes)
    if spec.model == "point":
        sizes = replace(sizes, atoms=1, atom_hidden=SCALE.point_hidden)
    state, batch = draw(name, spec, sizes, SCALE.scenes, seed, wide)
    result, grads = gradients(state, batch, sizes, spec.goal)
    rounded = autocast_gradients(state, batch, sizes, spec)
    assert rounded.keys() == grads.keys(), f"{name}: {rounded.keys() ^ grads.keys()}"
    errors = {key: error_of(rounded[key], g)[None] for key, g in grads.items()}
    groups = dict(w=dict(state.params), t=dict(state.target), x=dict(batch), g=grads, e=errors,
                  l={"total": result.loss[None]})
    tensors = {f"{group}.{key}": value.to(torch.uint8) if value.dtype == torch.bool
               else value.detach().float()
               for group, members in groups.items() for key, value in members.items()}
    metadata = {"case": name, "model": spec.model, "scales": spec.scales, "steps": "1",
                "seed": str(seed), "torch": torch.__version__, "machine": platform.machine(),
                "bf16": torch.backends.cpu.get_cpu_capability(), **sizes.as_metadata(),
                **spec.goal.as_metadata(), **spec.optim.as_metadata()}
    return tensors, metadata


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path, help="directory to write to; made when missing")
    parser.add_argument("--seed", type=int, default=0, help="same seed, same draws (default 0)")
    parser.add_argument("--draws", type=int, default=DRAWS, help=f"files per case (default {DRAWS})")
    parser.add_argument("--cases", default=",".join(CASES), metavar="A,B",
                        help="comma-separated cases (default: all)")
    args = parser.parse_args()
    torch.set_num_threads(1)    # one summation order on every machine
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.cases.split(","):
        spec = CASES[name]
        for draw in range(args.draws):
            tensors, metadata = make_case(name, spec, args.draws * args.seed + draw, wide=True)
            files.save(args.out / f"{name}_{draw}.safetensors", tensors, metadata)
            worst = max((float(value), key) for key, value in tensors.items()
                        if key.startswith("e."))
            print(f"{name} {draw}: largest error of autocast {worst[0]:.3g} ({worst[1]})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
