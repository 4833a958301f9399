"""Parameters and forward pass of every network, written out as equations.

Kinds
    branch      encoder, K atoms, router if K > 1, one shared decoder; `point` is K = 1
    outputonly  encoder, one latent, router, trunk with a base head and K scaled residual heads
    anchor      future-view encoder and decoder alone (first stage of the frozen-anchor control)

Layouts are PyTorch's: linear weights (out,in); GRU gates in the order reset, update, new;
attention in_proj rows query, key, value.
"""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Mapping

import torch
from torch import Tensor

from .scenes import Batch
from .sizes import FOCAL_FEATURES, POLYLINE_FEATURES, SEGMENT_STEPS, Sizes

Params = Mapping[str, Tensor]
NORM_FLOOR = 1e-12


# ------------------------------------------------------------------------------------ parameters

def parameter_shapes(sizes: Sizes, kind: str = "branch", scales: str = "fixed"
                     ) -> dict[str, tuple[int, ...]]:
    """Returns the name and shape of every parameter of a network, including learned mixture scales."""
    s, out = sizes, 2 * sizes.fut
    shapes = {f"encoder.{name}": shape for name, shape in encoder_shapes(sizes).items()}
    if kind == "outputonly":
        shapes |= _mlp_shapes("atom", s.latent, s.atom_hidden, s.latent)
        shapes |= _mlp_shapes("router", s.latent, s.router_hidden, s.atoms)
        shapes |= _linear_shapes("trunk", s.latent, s.trunk)
        shapes |= _linear_shapes("base", s.trunk, out)
        for k in range(s.atoms):
            shapes |= _linear_shapes(f"residual.{k}", s.trunk, out)
        shapes["step_scale"] = (s.atoms, s.fut)
        shapes["segment_scale"] = (s.atoms, s.fut // SEGMENT_STEPS)
    else:
        if kind != "anchor":
            for k in range(s.atoms):
                shapes |= _mlp_shapes(f"atoms.{k}", s.latent, s.atom_hidden, s.latent)
            if s.atoms > 1:
                shapes |= _mlp_shapes("router", s.latent, s.router_hidden, s.atoms)
        shapes |= _mlp_shapes("decoder", s.latent, s.decoder_hidden, out)
    if scales == "global":
        shapes |= {"log_sz": (1, 1), "log_sy": (1, 1)}
    elif scales == "component":
        shapes |= {"log_sz": (s.atoms, s.latent), "log_sy": (s.atoms, out)}
    return shapes


def encoder_shapes(sizes: Sizes) -> dict[str, tuple[int, ...]]:
    s, e = sizes, sizes.embed
    return {
        "gru.weight_ih_l0": (3 * e, FOCAL_FEATURES), "gru.weight_hh_l0": (3 * e, e),
        "gru.bias_ih_l0": (3 * e,), "gru.bias_hh_l0": (3 * e,),
        **_mlp_shapes("neighbor", s.obs * FOCAL_FEATURES, s.token_hidden, e),
        **_mlp_shapes("polyline", s.points * POLYLINE_FEATURES, s.token_hidden, e),
        "attn.in_proj_weight": (3 * e, e), "attn.in_proj_bias": (3 * e,),
        **_linear_shapes("attn.out_proj", e, e),
        **_mlp_shapes("proj", 2 * e, s.proj_hidden, s.latent),
    }


def _linear_shapes(name: str, inputs: int, outputs: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


def _mlp_shapes(name: str, inputs: int, hidden: int, outputs: int) -> dict[str, tuple[int, ...]]:
    return _linear_shapes(f"{name}.0", inputs, hidden) | _linear_shapes(f"{name}.2", hidden,
                                                                        outputs)


def initial_params(sizes: Sizes, rng: torch.Generator, kind: str = "branch",
                   scales: str = "fixed") -> dict[str, Tensor]:
    """Returns new float64 weights with PyTorch's default distributions."""
    shapes = parameter_shapes(sizes, kind, scales)
    constants = {"step_scale": 1.0, "segment_scale": 1.0, "log_sz": math.log(0.25),
                 "log_sy": math.log(2.0)}

    def draw(name: str, shape: tuple[int, ...]) -> Tensor:
        if name in constants:
            return torch.full(shape, constants[name], dtype=torch.float64)
        if name.endswith(("in_proj_bias", "out_proj.bias")):
            return torch.zeros(shape, dtype=torch.float64)
        if ".gru." in name:
            bound = sizes.embed ** -0.5
        elif name.endswith("in_proj_weight"):
            bound = math.sqrt(6 / sum(shape))
        else:
            bound = shapes[name.rpartition(".")[0] + ".weight"][1] ** -0.5
        return bound * (2 * torch.rand(shape, generator=rng, dtype=torch.float64) - 1)

    return {name: draw(name, shape) for name, shape in shapes.items()}


def part(params: Params, prefix: str) -> dict[str, Tensor]:
    """Returns the parameters below `prefix.`, with the prefix removed."""
    start = prefix + "."
    return {name[len(start):]: value for name, value in params.items() if name.startswith(start)}


# ---------------------------------------------------------------------------------------- layers

def unit(x: Tensor) -> Tensor:
    """Returns x / max(|x|, 1e-12) along the last axis."""
    return x / torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp_min(NORM_FLOOR)


def linear(params: Params, name: str, x: Tensor) -> Tensor:
    return x @ params[f"{name}.weight"].T + params[f"{name}.bias"]


def mlp(params: Params, name: str, x: Tensor) -> Tensor:
    return linear(params, f"{name}.2", torch.relu(linear(params, f"{name}.0", x)))


def gru(params: Params, x: Tensor) -> Tensor:
    """Returns the last state (B,E) of a GRU over x (B,steps,features), starting from a zero state.

    r = sigmoid(..), u = sigmoid(..), n = tanh(W_n x + b_n + r (V_n h + c_n)),
    h <- n + u (h - n).
    """
    w_hh, b_hh = params["gru.weight_hh_l0"], params["gru.bias_hh_l0"]
    inputs = x @ params["gru.weight_ih_l0"].T + params["gru.bias_ih_l0"]   # (B,steps,3E)
    h = x.new_zeros(x.shape[0], w_hh.shape[1])
    for step in inputs.unbind(1):
        reset_in, update_in, new_in = step.chunk(3, -1)
        reset_h, update_h, new_h = (h @ w_hh.T + b_hh).chunk(3, -1)
        reset = torch.sigmoid(reset_in + reset_h)
        update = torch.sigmoid(update_in + update_h)
        new = torch.tanh(new_in + reset * new_h)
        h = new + update * (h - new)
    return h


def attend(params: Params, query: Tensor, tokens: Tensor, present: Tensor, heads: int) -> Tensor:
    """Returns multi-head attention of one query (B,E) over the occupied slots of tokens (B,S,E)."""
    weight, bias = params["attn.in_proj_weight"].chunk(3), params["attn.in_proj_bias"].chunk(3)
    q, k, v = (x @ w.T + b for x, w, b in zip((query, tokens, tokens), weight, bias))
    q, k, v = (x.unflatten(-1, (heads, -1)) for x in (q, k, v))            # ..., heads, E/heads
    score = torch.einsum("bhd,bshd->bhs", q, k) / math.sqrt(q.shape[-1])
    share = torch.softmax(score.masked_fill(~present[:, None], -math.inf), -1)
    pooled = torch.einsum("bhs,bshd->bhd", share, v).flatten(1)
    return linear(params, "attn.out_proj", pooled)


# --------------------------------------------------------------------------------------- networks

def encode(params: Params, view: Batch, heads: int) -> Tensor:
    """Returns the scene embedding (B,D), not normalized. A view without neighbors attends to one zero slot."""
    state = gru(params, view["focal"])
    tokens = torch.cat([mlp(params, "neighbor", view["neighbors"].flatten(2)),
                        mlp(params, "polyline", view["polylines"].flatten(2))], 1)
    nmask = view["nmask"].clone()
    nmask[:, 0] |= ~nmask.any(1)
    present = torch.cat([nmask, view["pmask"]], 1)
    pooled = attend(params, state, tokens, present, heads)
    return mlp(params, "proj", torch.cat([state, pooled], -1))


def future_view(batch: Batch, dt: float) -> Batch:
    """Returns the true future as a scene, with the future as focal track, the same map and no neighbors.

    Velocity is the forward difference, and the last one is repeated. Heading is the direction of the
    velocity, and zero if the velocity is zero.
    """
    position = batch["future"]
    velocity = torch.diff(position, dim=1) / dt
    velocity = torch.cat([velocity, velocity[:, -1:]], 1)
    focal = torch.cat([position, velocity, unit(velocity), torch.zeros_like(position[..., :1])],
                      -1)
    return dict(batch, focal=focal, neighbors=torch.zeros_like(batch["neighbors"]),
                nmask=torch.zeros_like(batch["nmask"]))


def target_latent(encoder: Params, batch: Batch, sizes: Sizes) -> Tensor:
    """Returns the normalized latent (B,D) of the future view. `encoder` has names without a prefix."""
    return unit(encode(encoder, future_view(batch, sizes.dt), sizes.heads))


@dataclass(frozen=True)
class Prediction:
    context: Tensor   # (B,D)
    atoms: Tensor     # (B,L,D) normalized
    logits: Tensor    # (B,K)
    decoded: Tensor   # (B,K,F,2)


def decode(params: Params, latent: Tensor) -> Tensor:
    """Returns the trajectory (...,F,2) of a latent, or the base path of the output-only control."""
    if "trunk.weight" in params:
        flat = linear(params, "base", torch.relu(linear(params, "trunk", latent)))
    else:
        flat = mlp(params, "decoder", latent)
    return flat.unflatten(-1, (-1, 2))


def predict(params: Params, batch: Batch, sizes: Sizes) -> Prediction:
    """Returns all K branches of every scene."""
    context = encode(part(params, "encoder"), batch, sizes.heads)
    if "router.0.weight" in params:
        logits = mlp(params, "router", context)
    else:
        logits = context.new_zeros(context.shape[0], 1)
    if "trunk.weight" not in params:
        atoms = torch.stack([unit(mlp(params, f"atoms.{k}", context))
                             for k in range(sizes.atoms)], 1)
        return Prediction(context, atoms, logits, decode(params, atoms))
    atom = unit(mlp(params, "atom", context))
    hidden = torch.relu(linear(params, "trunk", atom))
    scale = params["step_scale"].unflatten(1, (-1, SEGMENT_STEPS))         # (K,segments,10)
    scale = (scale * params["segment_scale"][..., None]).flatten(1)        # (K,F)
    residual = torch.stack([linear(params, f"residual.{k}", hidden).unflatten(-1, (-1, 2))
                            for k in range(sizes.atoms)], 1)
    decoded = decode(params, atom)[:, None] + scale[..., None] * residual
    return Prediction(context, atom[:, None], logits, decoded)
