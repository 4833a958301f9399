"""Synthetic scenes: tracks with constant speed and turn rate, and straight polylines.

Statistics, per scene:
    occupied neighbors   uniform over 0..N, leading slots first
    first seen           40 % of the neighbors from the start, the others uniformly later, up to
                         60 % of the history
    occupied polylines   uniform over P // 6 .. P
    speeds               uniform up to 15 m/s; neighbors within 40 m, polylines within 50 m
    rates                20 % of the neighbors are not vehicles, 30 % of the polylines belong to an
                         intersection, 10 % are crosswalks
Empty slots and unobserved steps are zero.
"""
from __future__ import annotations

import math

import torch
from torch import Tensor

from .sizes import FOCAL_FEATURES, POLYLINE_FEATURES, Sizes

Batch = dict[str, Tensor]
"""focal (B,T,7), neighbors (B,N,T,7), nmask (B,N), polylines (B,P,Q,6), pmask (B,P),
future (B,F,2); masks are bool, True where the slot is present."""


def stand_in(count: int, sizes: Sizes, seed: int, dtype: torch.dtype = torch.float32) -> Batch:
    """Returns `count` scenes that depend only on the seed. float32 can represent all numbers, for any dtype."""
    rng = torch.Generator().manual_seed(seed)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=rng, dtype=torch.float64)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=rng, dtype=torch.float64)

    past = sizes.dt * torch.arange(1 - sizes.obs, 1, dtype=torch.float64)
    ahead = sizes.dt * torch.arange(1, sizes.fut + 1, dtype=torch.float64)

    speed = 15 * uniform(count)
    straight = torch.zeros(count, dtype=torch.float64)
    focal = _drive(past, speed, straight, straight)
    future = _drive(ahead, speed, straight, 0.08 * normal(count))[..., :2]
    future = future + 0.02 * normal(*future.shape)

    slots = (count, sizes.neighbors)
    neighbors = _drive(past, 15 * uniform(*slots), 2 * math.pi * uniform(*slots),
                       0.05 * normal(*slots))
    neighbors[..., :2] += 40 * normal(*slots, 1, 2)
    neighbors[..., 6] = (uniform(*slots, 1) < 0.2).double()
    first_seen = sizes.obs * (uniform(*slots, 1) - 0.4)
    neighbors = neighbors * (torch.arange(sizes.obs) >= first_seen)[..., None]
    nmask = _leading(sizes.neighbors, 0, uniform(count))

    lines = (count, sizes.polylines, 1)
    direction = 2 * math.pi * uniform(*lines)
    length = 5 + 25 * uniform(*lines)
    along = torch.linspace(0, 1, sizes.points, dtype=torch.float64) * length
    polylines = torch.zeros(count, sizes.polylines, sizes.points, POLYLINE_FEATURES,
                            dtype=torch.float64)
    polylines[..., 0] = 50 * normal(*lines) + along * direction.cos()
    polylines[..., 1] = 50 * normal(*lines) + along * direction.sin()
    polylines[..., 2] = direction.cos()
    polylines[..., 3] = direction.sin()
    polylines[..., 4] = (uniform(*lines) < 0.3).double()
    polylines[..., 5] = (uniform(*lines) < 0.1).double()
    pmask = _leading(sizes.polylines, sizes.polylines // 6, uniform(count))

    batch = dict(focal=focal, neighbors=neighbors * nmask[..., None, None], nmask=nmask,
                 polylines=polylines * pmask[..., None, None], pmask=pmask, future=future)
    return {key: value.float().to(dtype) if value.is_floating_point() else value
            for key, value in batch.items()}


def _drive(time: Tensor, speed: Tensor, heading: Tensor, turn_rate: Tensor) -> Tensor:
    """Returns the focal features (...,steps,7) with type 0 of a track that is at the origin at time 0.

    An arc of duration t has a chord of length v t sinc(w t / 2), in the mean direction of the two headings.
    """
    speed, heading, turn_rate = speed[..., None], heading[..., None], turn_rate[..., None]
    turned = turn_rate * time
    chord = speed * time * torch.sinc(turned / (2 * math.pi))
    features = torch.zeros(*turned.shape, FOCAL_FEATURES, dtype=torch.float64)
    for axis, wave in enumerate((torch.cos, torch.sin)):
        features[..., axis] = chord * wave(heading + turned / 2)
        features[..., 2 + axis] = speed * wave(heading + turned)
        features[..., 4 + axis] = wave(heading + turned)
    return features


def _leading(slots: int, least: int, share: Tensor) -> Tensor:
    """Returns a mask (B,slots) of the first slots. Their number is from least to slots, by `share` (B)."""
    present = least + ((slots - least + 1) * share).long()
    return torch.arange(slots) < present[:, None]
