"""SIGReg and VICReg on embeddings x (B,D): the published definitions, and SIGReg's directions.

SIGReg   Balestriero and LeCun, "LeJEPA", 2025 (arXiv:2511.08544), with the interval and the step of
         the authors' code: [-3,3] in steps of 3/16.
VICReg   Bardes, Ponce and LeCun, "VICReg", 2022 (arXiv:2105.04906).

Directions come from the engine's generator (src/core/rng.c), which is reimplemented here with Python
integers: xoshiro256++ seeded by splitmix64, with one stream for each (seed, step, slice).
"""
from __future__ import annotations

import math

import torch
from torch import Tensor

VARIANCE_EPSILON = 1e-4
HALF_WIDTH, POINTS = 3.0, 33    # of the quadrature of the Epps-Pulley statistic
WORD = (1 << 64) - 1


def epps_pulley(p: Tensor) -> Tensor:
    """Returns the statistic (S) that compares p (B,S) with N(0,1): B int |ecf - cf|^2 cf dt, trapezoid rule."""
    t = torch.linspace(-HALF_WIDTH, HALF_WIDTH, POINTS, dtype=p.dtype)
    gaussian = torch.exp(-t.square() / 2)
    empirical = torch.exp(1j * p[..., None] * t).mean(0)
    return p.shape[0] * torch.trapezoid((empirical - gaussian).abs().square() * gaussian, t)


def sigreg(x: Tensor, directions: Tensor) -> Tensor:
    """Returns the mean statistic over unit directions (S,D)."""
    return epps_pulley(x @ directions.T).mean()


def vicreg_variance(x: Tensor, gamma: float = 1.0) -> Tensor:
    deviation = (x.var(0, unbiased=True) + VARIANCE_EPSILON).sqrt()
    return torch.relu(gamma - deviation).mean()


def vicreg_covariance(x: Tensor) -> Tensor:
    centered = x - x.mean(0)
    covariance = centered.T @ centered / (x.shape[0] - 1)
    off_diagonal = covariance - torch.diag(covariance.diagonal())
    return off_diagonal.square().sum() / x.shape[1]


# -------------------------------------------------------------------------------------- directions

def _rotate(x: int, k: int) -> int:
    return (x << k | x >> (64 - k)) & WORD


def _splitmix(seed: int) -> tuple[int, int]:
    """Returns the next state and number of splitmix64."""
    seed = seed + 0x9E3779B97F4A7C15 & WORD
    x = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9 & WORD
    x = (x ^ x >> 27) * 0x94D049BB133111EB & WORD
    return seed, x ^ x >> 31


class Stream:
    """Returns the generator of (seed, name)."""

    def __init__(self, seed: int, name: str) -> None:
        digest = 0xCBF29CE484222325    # FNV-1a
        for byte in name.encode():
            digest = (digest ^ byte) * 0x100000001B3 & WORD
        word = _splitmix(seed)[1] ^ digest
        self.state = []
        for _ in range(4):
            word, number = _splitmix(word)
            self.state.append(number)

    def uniform(self) -> float:
        s = self.state
        number = _rotate(s[0] + s[3] & WORD, 23) + s[0] & WORD
        t = s[1] << 17 & WORD
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = _rotate(s[3], 45)
        return (number >> 11) * 2.0 ** -53

    def normal(self) -> float:
        u, v = 1 - self.uniform(), self.uniform()
        return math.sqrt(-2 * math.log(u)) * math.cos(2 * math.pi * v)


def directions(seed: int, step: int, count: int, width: int) -> Tensor:
    """Returns the unit directions (count,width) of the update after `step` updates."""
    rows = []
    for i in range(count):
        stream = Stream(seed, f"sigreg {step} {i}")
        rows.append([stream.normal() for _ in range(width)])
    drawn = torch.tensor(rows, dtype=torch.float64)
    return drawn / drawn.norm(dim=1, keepdim=True)
