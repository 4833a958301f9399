"""Computes loss, gradients and one update, with functions from dictionaries to dictionaries."""
from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Mapping

import torch
from torch import Tensor

from .network import (Params, Prediction, decode, encode, future_view, part, predict,
                      target_latent, unit)
from .objectives import OBJECTIVES, Case, Goal, Terms, anchor_a, regularize, total
from .scenes import Batch
from .sizes import Sizes


@dataclass(frozen=True)
class Optim:
    """AdamW, clipping and EMA settings; field names are metadata keys."""
    lr: float = 3e-4
    beta1: float = 0.9
    beta2: float = 0.999
    adam_eps: float = 1e-8
    weight_decay: float = 1e-2
    clip: float = 5.0
    ema: float = 0.996    # 1.0 keeps the target frozen

    def as_metadata(self) -> dict[str, str]:
        return {key: str(value) for key, value in asdict(self).items()}


@dataclass(frozen=True)
class State:
    """The state that an update changes."""
    params: Mapping[str, Tensor]
    target: Mapping[str, Tensor]                     # target encoder, names without a prefix
    step: int = 0
    first: Mapping[str, Tensor] = field(default_factory=dict)    # AdamW moments
    second: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Evaluation:
    loss: Tensor
    terms: Terms
    prediction: Prediction | None    # None for anchor_a, which predicts nothing
    target: Tensor                   # (B,D)
    reconstruction: Tensor           # (B,F,2)


def evaluate(params: Params, target: Params, batch: Batch, sizes: Sizes, goal: Goal,
             step: int = 0) -> Evaluation:
    """Returns the forward pass and the loss after `step` updates. anchor_a encodes the future with the
    encoder that is trained."""
    if goal.kind == "anchor_a":
        raw = encode(part(params, "encoder"), future_view(batch, sizes.dt), sizes.heads)
        latent = unit(raw)
        decoded = decode(params, latent)
        terms = anchor_a(goal, latent, decoded, batch["future"]) | regularize(goal, raw, step)
        return Evaluation(total(terms), terms, None, latent, decoded)
    prediction = predict(params, batch, sizes)
    latent = target_latent(target, batch, sizes).detach()
    reconstruction = decode(params, latent)
    case = Case(prediction, latent, batch["future"], reconstruction, params)
    terms = OBJECTIVES[goal.kind](goal, case) | regularize(goal, prediction.context, step)
    return Evaluation(total(terms), terms, prediction, latent, reconstruction)


def gradients(state: State, batch: Batch, sizes: Sizes, goal: Goal
              ) -> tuple[Evaluation, dict[str, Tensor]]:
    """Returns the gradient of the loss for every parameter that a term reaches."""
    leaves = {name: value.detach().requires_grad_() for name, value in state.params.items()}
    result = evaluate(leaves, state.target, batch, sizes, goal, state.step)
    grads = torch.autograd.grad(result.loss, list(leaves.values()), allow_unused=True)
    return result, {name: g for name, g in zip(leaves, grads) if g is not None}


def global_norm(grads: Mapping[str, Tensor]) -> Tensor:
    return torch.stack([g.square().sum() for g in grads.values()]).sum().sqrt()


def update(state: State, grads: Mapping[str, Tensor], optim: Optim) -> State:
    """Clips to the global norm, applies AdamW to parameters with a gradient, and updates the EMA of the encoder.

    The clip factor is min(1, clip / (norm + 1e-6)), as in torch.nn.utils.clip_grad_norm_.
    """
    shrink = (optim.clip / (global_norm(grads) + 1e-6)).clamp(max=1.0)
    step = state.step + 1
    bias1, bias2 = 1 - optim.beta1 ** step, 1 - optim.beta2 ** step
    params, first, second = dict(state.params), dict(state.first), dict(state.second)
    for name, raw in grads.items():
        g, zero = shrink * raw, torch.zeros_like(raw)
        first[name] = torch.lerp(first.get(name, zero), g, 1 - optim.beta1)
        second[name] = optim.beta2 * second.get(name, zero) + (1 - optim.beta2) * g.square()
        move = first[name] / bias1 / ((second[name] / bias2).sqrt() + optim.adam_eps)
        params[name] = (1 - optim.lr * optim.weight_decay) * params[name] - optim.lr * move
    return State(params, follow(state.target, part(params, "encoder"), optim.ema), step, first,
                 second)


def follow(target: Params, online: Params, momentum: float) -> dict[str, Tensor]:
    """Returns the exponential moving average. A momentum of 1 returns the same bits."""
    if momentum == 1.0:
        return dict(target)
    return {name: momentum * value + (1 - momentum) * online[name]
            for name, value in target.items()}


def learning_rate(step: int, steps_per_epoch: int, epochs: int = 30, warmup: int = 2,
                  base: float = 3e-4) -> float:
    """Returns a rate that is linear over the warm-up epochs and then half a cosine down to zero. step counts from 0."""
    rising, last = warmup * steps_per_epoch, epochs * steps_per_epoch
    if step < rising:
        return base * (step + 1) / rising
    return base * (1 + math.cos(math.pi * (step - rising) / (last - rising))) / 2
