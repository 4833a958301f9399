"""Every training objective as a set of named, weighted terms.

total = sum of weight * value over the terms whose weight is not zero. A term with weight zero is not part
of the graph. Parameters that only this term reaches have no gradient (None, not zero) and are neither
updated nor decayed. Such terms are still reported.

The target latent z is a constant everywhere except in anchor_a, which trains it.
"""
from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Callable, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from . import regularizers
from .network import Params, Prediction

SQUARED_DISTANCE_FLOOR = 1e-12


@dataclass(frozen=True)
class Goal:
    """An objective and all of its settings; field names are metadata keys (kind: `objective`)."""
    kind: str = "fullset"
    lambda_z: float = 1.0
    lambda_y: float = 1.0
    lambda_rec: float = 1.0
    lambda_router: float = 1.0    # cross-entropy of the winner-takes-all family
    beta: float = 1.0             # time weight beta^t of the decoded distance
    tau: float = 0.25             # soft-WTA temperature
    rho: float = 0.5              # share of the balanced plan in the Sinkhorn objective
    eps: float = 0.1              # entropy of that plan
    sinkhorn_iters: int = 50
    sigma_z: float = 0.5          # fixed mixture scales
    sigma_y: float = 4.0
    usage_kl: float = 0.0
    variance_floor: float = 0.02  # anchor_a
    rank_floor: float = 8.0
    rank_weight: float = 0.25
    sigreg: float = 0.0           # regularizers of the encoder's output before normalization
    sigreg_slices: int = 256
    vicreg_variance: float = 0.0
    vicreg_covariance: float = 0.0
    vicreg_gamma: float = 1.0

    def as_metadata(self) -> dict[str, str]:
        """Returns all settings, but those of the regularizers only if they are not at their defaults."""
        numbers = {f.name: str(getattr(self, f.name)) for f in fields(self)
                   if f.name != "kind" and not (f.name.startswith(("sigreg", "vicreg"))
                                                and getattr(self, f.name) == f.default)}
        return {"objective": self.kind, **numbers}


class Term(NamedTuple):
    weight: float
    value: Tensor


class Case(NamedTuple):
    """Inputs of an objective."""
    prediction: Prediction
    target: Tensor            # (B,D) normalized target latent
    future: Tensor            # (B,F,2)
    reconstruction: Tensor    # (B,F,2) decoded target latent
    params: Params            # for learned mixture scales


Terms = dict[str, Term]


def total(terms: Terms) -> Tensor:
    return sum(term.weight * term.value for term in terms.values() if term.weight != 0)


# ------------------------------------------------------------------------------------- distances

def root(squared: Tensor) -> Tensor:
    """Returns the square root, or 0 with derivative 0 near 0, so that equal points do not affect each other."""
    apart = squared > SQUARED_DISTANCE_FLOOR
    return squared.clamp_min(SQUARED_DISTANCE_FLOOR).sqrt() * apart


def latent_distance(a: Tensor, b: Tensor) -> Tensor:
    return root((a - b).square().sum(-1))


def path_distance(a: Tensor, b: Tensor, beta: float = 1.0) -> Tensor:
    """Returns the root mean square over time of the step distances of (...,F,2), where step t has weight beta^t."""
    steps = torch.arange(a.shape[-2], dtype=a.dtype)
    share = torch.softmax(steps * math.log(beta), 0)
    return root((a - b).square().sum(-1) @ share)


def energy_score(weight: Tensor, to_target: Tensor, points: Tensor,
                 distance: Callable[[Tensor, Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    """Returns observation and dispersion (B) of the Energy Score. The score is their difference.

    weight, to_target (B,K); points (B,K,...). Each pair is visited once, which replaces the factor 1/2.
    """
    i, j = torch.triu_indices(points.shape[1], points.shape[1], 1)
    apart = distance(points[:, i], points[:, j])
    return (weight * to_target).sum(-1), (weight[:, i] * weight[:, j] * apart).sum(-1)


# ------------------------------------------------------------------------------------ objectives

def _paths(goal: Goal) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda a, b: path_distance(a, b, goal.beta)


def _to_targets(goal: Goal, case: Case) -> tuple[Tensor, Tensor]:
    """Returns latent (B,L) and decoded (B,K) distances to the target latent and the true future."""
    return (latent_distance(case.prediction.atoms, case.target[:, None]),
            path_distance(case.prediction.decoded, case.future[:, None], goal.beta))


def _reconstruction(goal: Goal, case: Case) -> Term:
    return Term(goal.lambda_rec, F.smooth_l1_loss(case.reconstruction, case.future))


def _set_scores(goal: Goal, case: Case, weight: Tensor) -> Terms:
    dz, dy = _to_targets(goal, case)
    fit_z, spread_z = energy_score(weight, dz, case.prediction.atoms, latent_distance)
    fit_y, spread_y = energy_score(weight, dy, case.prediction.decoded, _paths(goal))
    return dict(latent=Term(goal.lambda_z, (fit_z - spread_z).mean()),
                decoded=Term(goal.lambda_y, (fit_y - spread_y).mean()),
                rec=_reconstruction(goal, case))


def full_set(goal: Goal, case: Case) -> Terms:
    return _set_scores(goal, case, case.prediction.logits.softmax(-1))


def uniform(goal: Goal, case: Case) -> Terms:
    logits = case.prediction.logits
    return _set_scores(goal, case, torch.full_like(logits, 1 / logits.shape[-1]))


def output_only(goal: Goal, case: Case) -> Terms:
    weight = case.prediction.logits.softmax(-1)
    dz, dy = _to_targets(goal, case)
    fit, spread = energy_score(weight, dy, case.prediction.decoded, _paths(goal))
    return dict(latent=Term(goal.lambda_z, dz.mean()),
                decoded=Term(goal.lambda_y, (fit - spread).mean()),
                rec=_reconstruction(goal, case))


def _assigned(goal: Goal, case: Case, assign: Callable[[Tensor], tuple[Tensor, Tensor]]) -> Terms:
    """Computes the winner-takes-all family. `assign` maps decoded distances to (plan, router label)."""
    dz, dy = _to_targets(goal, case)
    plan, label = assign(dy.detach())
    log_weight = case.prediction.logits.log_softmax(-1)
    return dict(latent=Term(goal.lambda_z, (plan * dz).sum(-1).mean()),
                decoded=Term(goal.lambda_y, (plan * dy).sum(-1).mean()),
                router=Term(goal.lambda_router, -(label * log_weight).sum(-1).mean()),
                rec=_reconstruction(goal, case))


def winner(distance: Tensor) -> Tensor:
    """Returns the one-hot vector (B,K) of the nearest branch, or the first of several equal ones."""
    return torch.zeros_like(distance).scatter_(1, distance.argmin(-1, keepdim=True), 1.0)


def balanced_plan(cost: Tensor, eps: float, iterations: int) -> Tensor:
    """Returns the entropic transport between scenes (1/B each) and branches (1/K each), with rows scaled to 1.

    Sinkhorn iterations in the log domain, which update the row potential first and the column potential last.
    """
    score = -cost / eps
    log_row, log_column = (-math.log(n) for n in cost.shape)
    column = torch.zeros_like(score[:1])
    for _ in range(iterations):
        row = log_row - (score + column).logsumexp(1, keepdim=True)
        column = log_column - (score + row).logsumexp(0, keepdim=True)
    return torch.softmax(score + column, 1)


def specialization(goal: Goal, case: Case) -> Terms:
    return _assigned(goal, case, lambda d: (winner(d), winner(d)))


def soft_wta(goal: Goal, case: Case) -> Terms:
    def assign(d: Tensor) -> tuple[Tensor, Tensor]:
        plan = torch.softmax(-d / goal.tau, -1)
        return plan, plan
    return _assigned(goal, case, assign)


def sinkhorn(goal: Goal, case: Case) -> Terms:
    def assign(d: Tensor) -> tuple[Tensor, Tensor]:
        plan = balanced_plan(d, goal.eps, goal.sinkhorn_iters)
        return torch.lerp(winner(d), plan, goal.rho), winner(d)
    return _assigned(goal, case, assign)


def mixture(goal: Goal, case: Case) -> Terms:
    """Returns the negative log-likelihood of diagonal Gaussian mixtures around latents and trajectories."""
    log_weight = case.prediction.logits.log_softmax(-1)

    def nll(points: Tensor, target: Tensor, scale_name: str, sigma: float) -> Tensor:
        fixed = torch.full((1, 1), math.log(sigma), dtype=points.dtype)
        log_scale = case.params.get(scale_name, fixed).expand(points.shape[1:])
        residual = (points - target[:, None]) * torch.exp(-log_scale)
        log_density = -(0.5 * residual.square() + log_scale + 0.5 * math.log(2 * math.pi)).sum(-1)
        return -(log_weight + log_density).logsumexp(-1).mean()

    usage = log_weight.exp().mean(0)
    divergence = (usage * (usage * usage.numel()).clamp_min(1e-12).log()).sum()
    return dict(latent=Term(goal.lambda_z, nll(case.prediction.atoms, case.target, "log_sz",
                                               goal.sigma_z)),
                decoded=Term(goal.lambda_y, nll(case.prediction.decoded.flatten(2),
                                                case.future.flatten(1), "log_sy", goal.sigma_y)),
                rec=_reconstruction(goal, case), usage=Term(goal.usage_kl, divergence))


def anchor_b(goal: Goal, case: Case) -> Terms:
    """Returns only the latent Energy Score, because decoder and target are frozen."""
    return dict(latent=full_set(goal, case)["latent"])


OBJECTIVES: dict[str, Callable[[Goal, Case], Terms]] = dict(
    fullset=full_set, uniform=uniform, outputonly=output_only, specialization=specialization,
    softwta=soft_wta, sinkhorn=sinkhorn, mdn=mixture, anchor_b=anchor_b)


def anchor_a(goal: Goal, latent: Tensor, decoded: Tensor, future: Tensor) -> Terms:
    """Returns the reconstruction, and floors on the spread of the latents and on their participation ratio.

    latent (B,D) normalized and trained, decoded and future (B,F,2).
    """
    centered = latent - latent.mean(0)
    variance = centered.square().mean(0)
    covariance = centered.T @ centered / latent.shape[0]
    participation = variance.sum().square() / covariance.square().sum()
    floor = goal.variance_floor
    return dict(rec=Term(1.0, F.smooth_l1_loss(decoded, future)),
                var=Term(1.0, torch.relu(floor - (variance + 1e-4).sqrt()).mean()),
                rank=Term(goal.rank_weight,
                          torch.relu(goal.rank_floor - participation) / goal.rank_floor),
                rpr=Term(0.0, participation))


def regularize(goal: Goal, embedding: Tensor, step: int) -> Terms:
    """Returns the regularizers with a nonzero weight, on the trained encoder's output (B,D) before
    normalization. The seed of SIGReg's directions is 0, the default of a trainer."""
    terms = {}
    if goal.sigreg:
        slices = regularizers.directions(0, step, goal.sigreg_slices, embedding.shape[1])
        terms["sigreg"] = Term(goal.sigreg, regularizers.sigreg(embedding, slices))
    if goal.vicreg_variance:
        terms["vicreg_variance"] = Term(
            goal.vicreg_variance, regularizers.vicreg_variance(embedding, goal.vicreg_gamma))
    if goal.vicreg_covariance:
        terms["vicreg_covariance"] = Term(goal.vicreg_covariance,
                                          regularizers.vicreg_covariance(embedding))
    return terms
