"""Conditioned training: AdamW steps theta, where the weights are w = sigma theta.

PyTorch itself reparametrizes and updates the modules: torch.optim.AdamW, torch.optim.Muon and
torch.nn.utils.clip_grad_norm_ are applied to theta only. Schedule-free AdamW is the one of package
schedulefree.
"""
from __future__ import annotations

from typing import Mapping
from unittest import mock

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
# Encoder matrices that Muon updates, and the number of matrices in the tensor.
MUON = {"encoder.gru.weight_hh_l0": 3, "encoder.neighbor.2.weight": 1, "encoder.polyline.2.weight": 1,
        "encoder.attn.in_proj_weight": 3, "encoder.attn.out_proj.weight": 1,
        "encoder.mlp.2.weight": 1, "encoder.proj.0.weight": 1, "encoder.proj.2.weight": 1}


def sigma(name: str, value: Tensor, sizes: Sizes) -> Tensor:
    """Scale of a tensor, broadcast over its rows."""
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
    """Rows 2t and 2t+1 are x and y of step t: (F,2,...)."""
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


def newton_schulz(x: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float
                  ) -> Tensor:
    """Newton-Schulz iteration of torch.optim.Muon without its rounding to bfloat16."""
    a, b, c = coefficients
    turned = x.shape[0] > x.shape[1]
    y = x.T if turned else x
    y = y / y.norm().clamp(min=eps)
    for _ in range(steps):
        gram = y @ y.T
        y = a * y + (b * gram + c * gram @ gram) @ y
    return y.T if turned else y


class Optimizer:
    """AdamW or schedule-free AdamW for all thetas, or Muon for the encoder's inner matrices and
    AdamW for the others."""

    def __init__(self, thetas: Mapping[str, list[Tensor]], optim: Optim, muon: bool,
                 schedule_free: bool):
        matrices = [matrix for name in thetas if muon and name in MUON for matrix in thetas[name]]
        others = [theta for name in thetas if not (muon and name in MUON) for theta in thetas[name]]
        self.thetas = matrices + others
        adamw = torch.optim.AdamW
        if schedule_free:
            from schedulefree import AdamWScheduleFree as adamw
        self.optimizers: list[torch.optim.Optimizer] = [adamw(
            others, lr=optim.lr, betas=(optim.beta1, optim.beta2), eps=optim.adam_eps,
            weight_decay=optim.weight_decay)]
        if matrices:
            self.optimizers.append(torch.optim.Muon(
                matrices, lr=optim.lr, weight_decay=optim.weight_decay, momentum=0.95,
                adjust_lr_fn="match_rms_adamw"))
        if schedule_free:
            self.optimizers[0].train()

    def step(self, clip: float) -> Tensor:
        norm = torch.nn.utils.clip_grad_norm_(self.thetas, clip)
        with mock.patch("torch.optim._muon._zeropower_via_newtonschulz", newton_schulz):
            for optimizer in self.optimizers:
                optimizer.step()
        for theta in self.thetas:
            theta.grad = None
        return norm

    def finish(self) -> None:
        """Sets the thetas to the average that schedule-free AdamW evaluates."""
        for optimizer in self.optimizers:
            if hasattr(optimizer, "eval"):
                optimizer.eval()


def train(state: State, batch: Batch, sizes: Sizes, goal: Goal, optim: Optim, steps: int,
          conditioned: bool, muon: bool, schedule_free: bool
          ) -> tuple[dict[str, Tensor], Tensor, State]:
    """Gradients of theta and their norm at the first update, and the state after the last one."""
    def split(name: str, value: Tensor) -> list[Tensor]:
        theta = theta_of(name, value, sizes) if conditioned else value
        return [piece.clone().requires_grad_()
                for piece in theta.chunk(MUON[name] if muon and name in MUON else 1)]

    def join(name: str, parts: list[Tensor]) -> Tensor:
        return weight(name, torch.cat(parts), sizes) if conditioned else torch.cat(parts)

    def current() -> dict[str, Tensor]:
        return {name: join(name, [piece.detach() for piece in parts])
                for name, parts in thetas.items()}

    thetas = {name: split(name, value) for name, value in state.params.items()}
    optimizer = Optimizer(thetas, optim, muon, schedule_free)
    target: Mapping[str, Tensor] = state.target
    first: dict[str, Tensor] = {}
    norm = torch.tensor(0.0)
    for step in range(steps):
        params = {name: join(name, parts) for name, parts in thetas.items()}
        evaluate(params, target, batch, sizes, goal).loss.backward()
        grads = {name: torch.cat([piece.grad for piece in parts]) for name, parts in thetas.items()
                 if parts[0].grad is not None}
        total = optimizer.step(optim.clip)
        if step == 0:
            first, norm = grads, total
        params = current()
        target = follow(target, part(params, "encoder"), optim.ema)
    optimizer.finish()
    params = current()
    return first, norm, State(params, target, steps)
