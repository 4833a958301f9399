#!/usr/bin/env python3
"""Writes golden files: one safetensors file per case, computed in float64, stored in float32.

Tensor groups of a file
    w.*   parameters under their PyTorch names; t.* the target encoder, different from the online one
    x.*   the batch, padded; masks are U8, 1 if the slot is occupied
    o.*   forward pass: c context, u atoms, logits, y decoded, z normalized target latent
    l.*   the loss `total` and its unweighted terms
    g.*   gradients before clipping, for the parameters that have one; g.norm is their global norm
    s.*   parameters after `steps` updates on the same batch; st.* the target encoder
          (conditioned: g.* are gradients of theta, see reference/conditioning.py)
    m.*   metrics of the forward pass
Anchor stage A has no target and no branches, so o.z and o.y are the latent and its decoding.
The metadata contains the model, the objective, every size and every hyperparameter, as strings.

The same seed gives the same files. A draw that is close to a decision boundary (a rectifier at zero, a
nearly tied winner, an endpoint at a metric's radius) is replaced by the next draw, because rounding
alone could make a correct single-precision program decide differently.
"""
from __future__ import annotations

import argparse
import hashlib
import math
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from reference import conditioning, files, modules
from reference.metrics import anchor_metrics, clearance, metrics
from reference.network import encoder_shapes, initial_params, part
from reference.objectives import Goal, path_distance
from reference.scenes import Batch, stand_in
from reference.sizes import PAPER, PAPER_POINT_HIDDEN, Sizes
from reference.training import (Evaluation, Optim, State, evaluate, global_norm, gradients,
                                update)


@dataclass(frozen=True)
class Scale:
    """A set of sizes, and the tensors of it that a file contains."""
    sizes: Sizes
    point_hidden: int              # atom width of the K = 1 control
    scenes: int
    anchor_scenes: int             # the rank floor needs a batch with more scenes than its value
    steps: int
    least_eps: float = 0.0         # lower bound of AdamW's eps, see Spec
    keep: tuple[str, ...] = ()     # tensors of g, s and st that are stored; empty means all


SCALES = {
    "tiny": Scale(Sizes(obs=5, fut=10, neighbors=3, polylines=4, points=3, embed=8, heads=2,
                        token_hidden=11, latent=11, proj_hidden=9, atoms=3, atom_hidden=9,
                        router_hidden=6, decoder_hidden=9, trunk=12), 17, 5, 14, 3, 1e-6),
    "small": Scale(Sizes(obs=8, fut=20, neighbors=4, polylines=6, points=5, embed=16, heads=4,
                         token_hidden=24, latent=32, proj_hidden=28, atoms=3, atom_hidden=40,
                         router_hidden=12, decoder_hidden=36, trunk=44), 53, 6, 24, 3),
    # No size is a multiple of a vector, a register tile or the number of shards.
    "odd": Scale(Sizes(obs=7, fut=20, neighbors=3, polylines=5, points=3, embed=21, heads=3,
                       token_hidden=37, latent=41, proj_hidden=29, atoms=7, atom_hidden=19,
                       router_hidden=13, decoder_hidden=31, trunk=47), 61, 19, 29, 3),
    "paper": Scale(PAPER, PAPER_POINT_HIDDEN, 4, 24, 1, 1e-6,
                   ("norm", "encoder.gru.weight_hh_l0", "encoder.gru.bias_ih_l0",
                    "encoder.neighbor.2.bias", "encoder.polyline.0.bias",
                    "encoder.attn.in_proj_weight", "encoder.proj.0.bias", "atoms.0.0.bias",
                    "atoms.5.2.bias", "router.2.weight", "decoder.2.bias", "base.bias",
                    "residual.3.bias", "step_scale", "segment_scale", "gru.weight_hh_l0",
                    "proj.2.bias")),
}


@dataclass(frozen=True)
class Spec:
    """The differences of a case from the full-set objective on the branch model.

    The key bias of the attention has a gradient of zero except for rounding, which AdamW divides by
    its eps. With eps = 1e-8 the quotient is visible in the updated weights, so 1e-6 is used.
    """
    goal: Goal = Goal()
    model: str = "branch"
    scales: str = "fixed"
    optim: Optim = Optim(adam_eps=1e-6)
    steps: int | None = None       # replaces the value of the scale
    scenes: int | None = None
    sizes: dict[str, int] = field(default_factory=dict)
    reach: float = 40.0            # factor on the decoder's last layer: meters between branches
    bare: bool = False             # scenes without polylines, with and without neighbors
    copies: str = "none"           # atoms with the weights of the first one: none, one, all
    conditioned: bool = False      # g are gradients of theta, s the weights after steps of theta
    muon: bool = False             # Muon updates the encoder's inner matrices
    schedule_free: bool = False    # schedule-free AdamW; s are the averaged weights


ANCHOR_B = Goal("anchor_b", lambda_y=0.0, lambda_rec=0.0)
FROZEN = Optim(adam_eps=1e-6, ema=1.0)
# The number of slices is not a multiple of a block or a vector.
REGULARIZED = dict(sigreg=0.3, sigreg_slices=43, vicreg_variance=0.7, vicreg_covariance=1.5,
                   vicreg_gamma=0.9)

CASES: dict[str, Spec] = {
    "fullset": Spec(optim=Optim()),
    "uniform": Spec(Goal("uniform")),
    "specialization": Spec(Goal("specialization")),
    # Soft assignments are soft only if branches are decimeters apart.
    "softwta": Spec(Goal("softwta"), reach=12.0),
    "sinkhorn": Spec(Goal("sinkhorn"), reach=12.0),
    "mdn_fixed": Spec(Goal("mdn"), reach=1.0),
    "mdn_global": Spec(Goal("mdn"), scales="global", reach=1.0),
    "mdn_component": Spec(Goal("mdn", usage_kl=0.01), scales="component", reach=1.0),
    "decoded_only": Spec(Goal(lambda_z=0.0, lambda_rec=0.0)),
    "latent_only": Spec(Goal(lambda_y=0.0, lambda_rec=0.0)),
    "reweighted": Spec(Goal(lambda_z=2.0, lambda_y=0.5)),
    "point": Spec(model="point"),
    "outputonly": Spec(Goal("outputonly"), model="outputonly"),
    "anchor_a": Spec(Goal("anchor_a"), model="anchor", optim=FROZEN, reach=1.0),
    "anchor_b": Spec(ANCHOR_B, optim=FROZEN),
    "anchor_b_point": Spec(ANCHOR_B, model="point", optim=FROZEN),
    "regularized": Spec(Goal(**REGULARIZED)),
    "regularized_anchor_a": Spec(Goal("anchor_a", **REGULARIZED), model="anchor", optim=FROZEN,
                                 reach=1.0),
    "beta": Spec(Goal(beta=0.97)),
    "k1": Spec(sizes=dict(atoms=1)),
    "k64": Spec(sizes=dict(atoms=64, atom_hidden=5), reach=12.0),
    "mdn_k1": Spec(Goal("mdn", usage_kl=0.01), scales="component", sizes=dict(atoms=1), reach=1.0),
    "no_polylines": Spec(bare=True),
    "one_scene": Spec(scenes=1),
    # One update, because after it equal atoms are about as far apart as the distance that counts as zero.
    "twin_atoms": Spec(copies="one", steps=1, reach=1.0),
    "equal_atoms": Spec(Goal("uniform"), copies="all", steps=1, reach=1.0),
    "weighted_wta": Spec(Goal("specialization", 0.5, 2.0, 0.25, 0.3)),
    "settings": Spec(Goal("sinkhorn", rho=0.3, eps=0.25, sinkhorn_iters=7, lambda_router=0.5),
                     optim=Optim(1e-4, 0.8, 0.99, 1e-6, 0.1, 1.0, 0.9), steps=4, reach=12.0),
    # Five updates of torch.optim.AdamW on reparametrized weights; the second case clips.
    "conditioned": Spec(optim=Optim(clip=1e4, adam_eps=1e-6), steps=5, conditioned=True),
    "conditioned_clip": Spec(Goal("specialization"), optim=Optim(clip=0.5, adam_eps=1e-6, beta2=0.98,
                             weight_decay=0.1, ema=0.99), steps=5, conditioned=True),
    "conditioned_point": Spec(model="point", steps=5, conditioned=True),
    "conditioned_outputonly": Spec(Goal("outputonly"), model="outputonly", steps=5,
                                   conditioned=True),
    "conditioned_anchor_a": Spec(Goal("anchor_a"), model="anchor", optim=FROZEN, reach=1.0, steps=5,
                                 conditioned=True),
    # Five updates of torch.optim.Muon next to AdamW.
    "muon": Spec(optim=Optim(clip=0.5, adam_eps=1e-6, weight_decay=0.1), steps=5, conditioned=True,
                 muon=True),
    "muon_raw": Spec(Goal("specialization"), steps=5, muon=True),
    "muon_anchor_a": Spec(Goal("anchor_a"), model="anchor", optim=FROZEN, reach=1.0, steps=5,
                          conditioned=True, muon=True),
    # Five updates of schedulefree.AdamWScheduleFree.
    "schedule_free": Spec(optim=Optim(clip=0.5, adam_eps=1e-6, weight_decay=0.1), steps=5,
                          conditioned=True, schedule_free=True),
    "schedule_free_raw": Spec(Goal("specialization"), steps=5, schedule_free=True),
}

KINK_CLEARANCE = 2e-6        # of a rectifier's input, relative to the layer's root mean square
DECISION_CLEARANCE = 2e-5    # of metric thresholds and winners, in their own units
ATTEMPTS = 200


class RectifierWatch(TorchFunctionMode):
    """While active, records how close the input of any rectifier is to zero."""

    def __init__(self) -> None:
        super().__init__()
        self.closest = math.inf

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.relu:
            x = args[0].detach()
            gap = x.abs().min() / x.square().mean().sqrt().clamp_min(1e-30)
            self.closest = min(self.closest, float(gap))
        return func(*args, **(kwargs or {}))


def to_single(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Rounds to numbers that float32 can represent, in float64."""
    return {name: value.float().double() for name, value in tensors.items()}


def draw_weights(spec: Spec, sizes: Sizes, rng: torch.Generator) -> State:
    """Returns a network without zero and constant initial values, so that every parameter matters. Its
    trajectories move ahead at 6 m/s and are `reach` apart, so that the metrics are not trivial."""
    params = initial_params(sizes, rng, spec.model, spec.scales)
    ahead = 6 * sizes.dt * torch.arange(1, sizes.fut + 1, dtype=torch.float64)
    cruise = torch.stack([ahead, torch.zeros_like(ahead)], -1).flatten()

    def noise(value: Tensor, size: float) -> Tensor:
        return size * torch.randn(value.shape, generator=rng, dtype=torch.float64)

    for name, value in params.items():
        if name.endswith(("in_proj_bias", "out_proj.bias", "_scale")) or spec.scales == \
                "component" and name in ("log_sz", "log_sy"):
            params[name] = value + noise(value, 0.1)
        if name.startswith(("decoder.2.weight", "base.weight", "residual.")):
            params[name] = value * spec.reach
        if name in ("decoder.2.bias", "base.bias"):
            params[name] = value + cruise
    for k in range(1, {"none": 1, "one": 2, "all": sizes.atoms}[spec.copies]):
        params |= {f"atoms.{k}.{name}": value.clone()
                   for name, value in part(params, "atoms.0").items()}
    target = {}
    if spec.model != "anchor":
        target = {name: value + noise(value, 0.02)
                  for name, value in part(params, "encoder").items()}
        assert target.keys() == encoder_shapes(sizes).keys()
    return State(to_single(params), to_single(target))


def draw_batch(spec: Spec, sizes: Sizes, count: int, seed: int) -> Batch:
    """Returns synthetic scenes in which rare masks are set by hand."""
    batch = stand_in(count, sizes, seed, torch.float64)
    nmask, pmask = batch["nmask"], batch["pmask"]
    if count > 1:
        nmask[0] = False                           # without neighbors, the zero slot is attended to
        nmask[1] = True
        nmask[1, 0] = False                        # the first slot is empty, others are not
        pmask[1, 1::2] = False
    for scene, bearing in enumerate((0.8, -0.8, 0.0, 1.2)[:count]):     # every maneuver
        turn = torch.tensor([[math.cos(bearing), math.sin(bearing)],
                             [-math.sin(bearing), math.cos(bearing)]], dtype=torch.float64)
        batch["future"][scene] = batch["future"][scene] @ turn
    batch["future"] = batch["future"].float().double()
    if spec.bare:
        pmask[0] = pmask[1] = False                # no polylines and no neighbors; only neighbors
    batch["neighbors"] *= nmask[..., None, None]
    batch["polylines"] *= pmask[..., None, None]
    return batch


def weights_of(goal: Goal, logits: Tensor) -> Tensor:
    if goal.kind == "uniform":
        return torch.full_like(logits, 1 / logits.shape[-1])
    return logits.softmax(-1)


def is_clear(result: Evaluation, batch: Batch, goal: Goal, kinks: float) -> bool:
    """Returns whether rounding cannot change any decision in the case."""
    if kinks < KINK_CLEARANCE:
        return False
    p = result.prediction
    if p is None:
        return True
    gap = clearance(p.atoms, weights_of(goal, p.logits), p.decoded, batch["future"])
    if goal.kind in ("specialization", "sinkhorn"):
        distance = path_distance(p.decoded, batch["future"][:, None], goal.beta)
        nearest = distance.topk(2, -1, largest=False).values
        gap = min(gap, float((nearest[:, 1] - nearest[:, 0]).min()))
    return gap >= DECISION_CLEARANCE


def draw(name: str, spec: Spec, sizes: Sizes, count: int, label: str, seed: int
         ) -> tuple[State, Batch]:
    """Returns the first draw of this seed that is not close to any decision boundary."""
    for attempt in range(ATTEMPTS):
        key = f"{seed}/{label}/{name}/{attempt}".encode()
        number = int.from_bytes(hashlib.sha256(key).digest()[:6], "big")
        state = draw_weights(spec, sizes, torch.Generator().manual_seed(number))
        batch = draw_batch(spec, sizes, count, number + 1)
        with torch.no_grad(), RectifierWatch() as watch:
            result = evaluate(state.params, state.target, batch, sizes, spec.goal)
        if is_clear(result, batch, spec.goal, watch.closest):
            return state, batch
    raise RuntimeError(f"{name}: no draw in {ATTEMPTS} is clear of decision boundaries")


def check_modules(spec: Spec, sizes: Sizes, state: State, batch: Batch, result: Evaluation
                  ) -> None:
    """Checks that the equations and the torch.nn layers give the same results."""
    p = result.prediction
    net = modules.build(sizes, spec.model, spec.scales).double()
    net.load_state_dict(state.params, strict=True)
    with torch.no_grad():
        outputs = net(*(batch[key] for key in modules.INPUTS))
    for ours, theirs in zip((p.context, p.atoms, p.logits, p.decoded), outputs):
        torch.testing.assert_close(ours.detach(), theirs, rtol=1e-9, atol=1e-9)


def make_case(name: str, spec: Spec, label: str, seed: int
              ) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Returns the tensors and the metadata of one golden file."""
    scale = SCALES[label]
    sizes = replace(scale.sizes, **spec.sizes)
    if spec.model == "point":
        sizes = replace(sizes, atoms=1, atom_hidden=scale.point_hidden)
    count = spec.scenes or (scale.anchor_scenes if spec.model == "anchor" else scale.scenes)
    steps = spec.steps or scale.steps
    optim = replace(spec.optim, adam_eps=max(spec.optim.adam_eps, scale.least_eps))
    state, batch = draw(name, spec, sizes, count, label, seed)
    result, grads = gradients(state, batch, sizes, spec.goal)

    groups: dict[str, dict[str, Tensor]] = dict(w=dict(state.params), t=dict(state.target),
                                                x=dict(batch))
    p = result.prediction
    if p is None:
        groups["o"] = dict(z=result.target, y=result.reconstruction)
        numbers = anchor_metrics(result.target.detach())
    else:
        check_modules(spec, sizes, state, batch, result)
        groups["o"] = dict(c=p.context, u=p.atoms, logits=p.logits, y=p.decoded, z=result.target)
        numbers = metrics(p.atoms, weights_of(spec.goal, p.logits), p.decoded, result.target,
                          batch["future"])
    groups["l"] = {"total": result.loss[None],
                   **{key: term.value[None] for key, term in result.terms.items()}}
    norm = global_norm(grads)
    by_torch = spec.conditioned or spec.muon or spec.schedule_free
    if by_torch:
        grads, norm, after = conditioning.train(state, batch, sizes, spec.goal, optim, steps,
                                                spec.conditioned, spec.muon, spec.schedule_free)
    groups["g"] = {**grads, "norm": norm[None]}
    groups["m"] = {key: torch.tensor([value], dtype=torch.float64)
                   for key, value in numbers.items()}
    for _ in range(0 if by_torch else steps):
        state = update(state, gradients(state, batch, sizes, spec.goal)[1], optim)
    if by_torch:
        state = after
    groups["s"], groups["st"] = dict(state.params), dict(state.target)

    tensors = {f"{group}.{key}": value.to(torch.uint8) if value.dtype == torch.bool
               else value.detach().float()
               for group, members in groups.items() for key, value in members.items()
               if not scale.keep or group not in ("g", "s", "st") or key in scale.keep}
    metadata = {"case": name, "model": spec.model, "scales": spec.scales, "steps": str(steps),
                "seed": str(seed), **sizes.as_metadata(), **spec.goal.as_metadata(),
                **optim.as_metadata()} | ({"conditioned": "1"} if spec.conditioned else {}) | (
                    {"muon": "1"} if spec.muon else {}) | (
                    {"schedule_free": "1"} if spec.schedule_free else {})
    return tensors, metadata


def main() -> int:
    parser = argparse.ArgumentParser(description="Write golden fixtures as safetensors files.",
                                     epilog="cases: " + ", ".join(CASES))
    parser.add_argument("out", type=Path, help="directory to write to; made when missing")
    parser.add_argument("--seed", type=int, default=0, help="same seed, same files (default 0)")
    parser.add_argument("--sizes", choices=SCALES, default="small",
                        help="paper: outputs, loss, metrics and some gradients only")
    parser.add_argument("--cases", default="all", metavar="A,B,...",
                        help="comma-separated cases (default: all; for paper: fullset,outputonly)")
    args = parser.parse_args()
    if args.cases != "all":
        names = args.cases.split(",")
    else:
        names = ["fullset", "outputonly"] if args.sizes == "paper" else list(CASES)
    unknown = [name for name in names if name not in CASES]
    if unknown:
        parser.error(f"unknown case {', '.join(unknown)}; known: {', '.join(CASES)}")
    torch.set_num_threads(1)    # one summation order on every machine
    args.out.mkdir(parents=True, exist_ok=True)
    for name in names:
        path = args.out / f"{name}.safetensors"
        files.save(path, *make_case(name, CASES[name], args.sizes, args.seed))
        print(f"{path}  {path.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
