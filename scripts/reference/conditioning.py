"""Conditioned training: AdamW updates theta, where the weights are w = sigma theta.

The modules are reparametrized, so that torch.optim.AdamW and torch.nn.utils.clip_grad_norm_ work on
theta.
"""
from __future__ import annotations

from typing import Mapping

import torch
from torch import Tensor

from .network import part
from .objectives import Goal
from .scenes import Batch
from .sizes import Sizes
from .training import Optim, State, evaluate, follow

METERS, METERS_PER_SECOND = 20.0, 5.0
TRACK = [1 / METERS] * 2 + [1 / METERS_PER_SECOND] * 2 + [1.0] * 3
POINT = [1 / METERS] * 2 + [1.0] * 4
STEPS = ("decoder.2.", "base.", "residual.")


def sigma(name: str, value: Tensor, sizes: Sizes) -> Tensor:
    """Returns the scale of a tensor, broadcast over its rows."""
    def columns(channels: list[float]) -> Tensor:
        return torch.tensor(channels, dtype=value.dtype).repeat(value.shape[1] // len(channels))

    if name == "encoder.gru.weight_ih_l0":
        return columns(TRACK) * (3 * sizes.embed / 7) ** 0.5
    if name == "encoder.neighbor.0.weight":
        return columns(TRACK)
    if name == "encoder.polyline.0.weight":
        return columns(POINT)
    if name in ("decoder.0.weight", "trunk.weight"):
        return torch.tensor(sizes.latent ** 0.5, dtype=value.dtype)
    if name.startswith(STEPS):
        return torch.tensor(METERS_PER_SECOND * sizes.dt, dtype=value.dtype)
    return torch.tensor(1.0, dtype=value.dtype)


def by_time(value: Tensor) -> Tensor:
    """Reshapes rows 2t and 2t+1, which are x and y of step t, to (F,2,...)."""
    return value.reshape(value.shape[0] // 2, 2, -1)


def weight(name: str, theta: Tensor, sizes: Sizes) -> Tensor:
    if name.startswith(STEPS):
        return sigma(name, theta, sizes) * by_time(theta).cumsum(0).reshape(theta.shape)
    return sigma(name, theta, sizes) * theta


def theta_of(name: str, value: Tensor, sizes: Sizes) -> Tensor:
    if name.startswith(STEPS):
        rows = by_time(value)
        steps = torch.cat([rows[:1], rows[1:] - rows[:-1]]).reshape(value.shape)
        return steps / sigma(name, value, sizes)
    return value / sigma(name, value, sizes)


def train(state: State, batch: Batch, sizes: Sizes, goal: Goal, optim: Optim, steps: int
          ) -> tuple[dict[str, Tensor], Tensor, State]:
    """Returns the gradients of theta and their norm at the first update, and the state after the last update."""
    thetas = {name: theta_of(name, value, sizes).clone().requires_grad_()
              for name, value in state.params.items()}
    adamw = torch.optim.AdamW(thetas.values(), lr=optim.lr, betas=(optim.beta1, optim.beta2),
                              eps=optim.adam_eps, weight_decay=optim.weight_decay)
    target: Mapping[str, Tensor] = state.target
    first: dict[str, Tensor] = {}
    norm = torch.tensor(0.0)
    for step in range(steps):
        adamw.zero_grad(set_to_none=True)
        params = {name: weight(name, theta, sizes) for name, theta in thetas.items()}
        evaluate(params, target, batch, sizes, goal).loss.backward()
        grads = {name: theta.grad.clone() for name, theta in thetas.items()
                 if theta.grad is not None}
        total = torch.nn.utils.clip_grad_norm_(thetas.values(), optim.clip)
        if step == 0:
            first, norm = grads, total
        adamw.step()
        params = {name: weight(name, theta.detach(), sizes) for name, theta in thetas.items()}
        target = follow(target, part(params, "encoder"), optim.ema)
    return first, norm, State(params, target, steps)
