"""Evaluation metrics in float64, and the distance of a batch from their decision boundaries."""
from __future__ import annotations

import math

import torch
from torch import Tensor

from .objectives import energy_score, latent_distance, path_distance

MISS_RADIUS = 2.0        # m, endpoint
STOP_RADIUS = 2.0        # m, endpoint from the origin
TURN_ANGLE = 30.0        # degrees, endpoint bearing
SAME_ENDPOINT = 1.0      # m
SAME_LATENT = 0.10       # chord distance
ACTIVE_MASS = 0.01
STOP, STRAIGHT, LEFT, RIGHT = range(4)
ECE_BINS = 10


def euclidean(a: Tensor, b: Tensor) -> Tensor:
    return torch.linalg.vector_norm(a - b, dim=-1)


def bearing(endpoint: Tensor) -> Tensor:
    return torch.rad2deg(torch.atan2(endpoint[..., 1], endpoint[..., 0]))


def maneuver(endpoint: Tensor) -> Tensor:
    """Returns the maneuver (...) of an endpoint (...,2)."""
    angle = bearing(endpoint)
    turn = torch.where(angle >= TURN_ANGLE, LEFT, torch.where(angle <= -TURN_ANGLE, RIGHT,
                                                              STRAIGHT))
    return torch.where(torch.linalg.vector_norm(endpoint, dim=-1) < STOP_RADIUS, STOP, turn)


def maneuver_mass(weight: Tensor, endpoints: Tensor) -> Tensor:
    """Returns the probability (B,4) of each maneuver."""
    return weight.new_zeros(weight.shape[0], 4).scatter_add_(1, maneuver(endpoints), weight)


def effective_count(mass: Tensor) -> Tensor:
    """Returns exp of the entropy along the last axis."""
    return torch.special.entr(mass).sum(-1).exp()


def calibration_error(mass: Tensor, truth: Tensor) -> Tensor:
    """Returns the expected calibration error of the most likely maneuver, with bins of equal width."""
    confidence, guess = mass.max(-1)
    bins = (confidence * ECE_BINS).long().clamp(max=ECE_BINS - 1)
    surplus = (guess == truth).double() - confidence
    per_bin = surplus.new_zeros(ECE_BINS).index_add_(0, bins, surplus)
    return per_bin.abs().sum() / truth.numel()


def merged_mass(weight: Tensor, near: Tensor) -> Tensor:
    """Returns weights (B,K) summed over connected components of near (B,K,K), at the lowest member."""
    reach = near.double()
    for _ in range(max(1, (weight.shape[1] - 1).bit_length())):
        reach = (reach @ reach > 0).double()
    return torch.zeros_like(weight).scatter_add_(1, reach.argmax(-1), weight)


@torch.no_grad()
def metrics(atoms: Tensor, weight: Tensor, decoded: Tensor, target: Tensor, future: Tensor
            ) -> dict[str, float]:
    """Returns means over scenes: atoms (B,L,D), weight (B,K), decoded (B,K,F,2), target (B,D),
    future (B,F,2). neff_collision is left out if one latent has several outputs."""
    atoms, weight, decoded, target, future = (
        x.double() for x in (atoms, weight, decoded, target, future))
    paired = atoms.shape[1] == weight.shape[1]
    ends, true_end = decoded[:, :, -1], future[:, -1]
    fde = euclidean(ends, true_end[:, None])
    ade = euclidean(decoded, future[:, None]).mean(-1)
    dz = latent_distance(atoms, target[:, None])
    observed, spread = energy_score(weight, path_distance(decoded, future[:, None]), decoded,
                                    path_distance)
    end_fit, end_spread = energy_score(weight, fde, ends, euclidean)
    top = weight.argmax(-1, keepdim=True)
    top_fde = fde.gather(1, top)
    best_fde = fde.amin(-1)
    mass, truth = maneuver_mass(weight, ends), maneuver(true_end)
    one_hot = torch.nn.functional.one_hot(truth, 4).double()
    near_ends = euclidean(ends[:, :, None], ends[:, None]) <= SAME_ENDPOINT

    result = dict(
        traj_es=observed - spread, traj_obs=observed, traj_disp=spread,
        end_es=end_fit - end_spread,
        exp_ade=(weight * ade).sum(-1), exp_fde=(weight * fde).sum(-1),
        top1_ade=ade.gather(1, top), top1_fde=top_fde, top1_mr=(top_fde > MISS_RADIUS).double(),
        min_ade=ade.amin(-1), min_fde=best_fde, min_mr=(best_fde > MISS_RADIUS).double(),
        brier=(mass - one_hot).square().sum(-1), ece=calibration_error(mass, truth),
        exp_entropy=effective_count(weight),
        active_heads=(weight.mean(0) >= ACTIVE_MASS).double().sum(),
        dedup_support=effective_count(merged_mass(weight, near_ends)))
    if paired:
        fit, apart = energy_score(weight, dz, atoms, latent_distance)
        result["latent_es"] = fit - apart
        close = latent_distance(atoms[:, :, None], atoms[:, None]) <= SAME_LATENT
        result["neff_collision"] = 1 / torch.einsum("bk,bl,bkl->b", weight, weight, close.double())
    else:
        result["latent_es"] = dz
    return {name: float(value.mean()) for name, value in result.items()}


def anchor_metrics(latent: Tensor) -> dict[str, float]:
    """Returns the spread of normalized latents (B,D), which the gates of the anchor check."""
    deviation = latent.std(0, correction=0)
    spectrum = torch.linalg.eigvalsh(torch.cov(latent.T, correction=0)).clamp_min(0)
    return dict(entropy_rank=float(effective_count(spectrum / spectrum.sum())),
                mean_std=float(deviation.mean()),
                low_std_fraction=float((deviation < 1e-3).double().mean()))


@torch.no_grad()
def clearance(atoms: Tensor, weight: Tensor, decoded: Tensor, future: Tensor) -> float:
    """Returns the smallest distance of the batch from any threshold or tie of `metrics`.

    For a golden file it must be well above single-precision rounding, because a scene on the other side
    of a threshold changes a mean by 1/B. Equal weights are an exact tie, and the lowest index wins.
    """
    ends, true_end = decoded[:, :, -1], future[:, -1:]
    every_end = torch.cat([ends, true_end], 1)
    radius = torch.linalg.vector_norm(every_end, dim=-1)
    turn = (bearing(every_end).abs() - TURN_ANGLE)[radius >= STOP_RADIUS]
    mass = maneuver_mass(weight, ends)
    ranked = mass.sort(-1, descending=True).values
    scaled = ECE_BINS * mass.amax(-1)
    i, j = torch.triu_indices(weight.shape[1], weight.shape[1], 1)
    gaps = [euclidean(ends, true_end) - MISS_RADIUS, radius - STOP_RADIUS, turn,
            ranked[:, 0] - ranked[:, 1], (scaled - scaled.round().clamp(max=ECE_BINS - 1)),
            euclidean(ends[:, i], ends[:, j]) - SAME_ENDPOINT, weight.mean(0) - ACTIVE_MASS]
    if atoms.shape[1] == weight.shape[1]:
        gaps.append(latent_distance(atoms[:, i], atoms[:, j]) - SAME_LATENT)
    if not bool((weight == weight[:, :1]).all()):
        likeliest = weight.topk(2, -1).values
        gaps.append(likeliest[:, 0] - likeliest[:, 1])
    return min((float(gap.abs().min()) for gap in gaps if gap.numel()), default=math.inf)
