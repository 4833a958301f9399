#!/usr/bin/env python3
"""Compares three updates of models of states and images with PyTorch.

    TEST_OBSERVED=path/of/test_observed peer_observed.py

test_observed writes every case of tests/train/observed_case.h: weights, target, inputs, losses,
outputs, gradients, and weights and target after three updates of AdamW and the moving average. This
script computes them with torch.nn.functional, autograd and torch.optim in double precision. One more
comparison, with the targets of the first two transitions swapped, must fail.

Exit codes: 0 equal, 1 different, 77 skipped because PyTorch or safetensors is not installed.
"""
from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import torch
    import torch.nn.functional as F
    from safetensors import safe_open
except ImportError as error:
    print(f"skipped: {error}; this test needs the Python packages torch and safetensors")
    sys.exit(77)

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from reference import regularizers  # noqa: E402

CASES = ("branch", "floors", "mdn", "fullset", "standard", "fused", "variational", "codebook",
         "image", "image-fused", "regularized", "everything")
LOSSES = ("total", "latent", "router", "usage", "variance", "rank", "participation", "sigreg",
          "vicreg_variance", "vicreg_covariance", "grad_norm")
REGULARIZERS = dict(sigreg=0.05, vicreg_variance=0.6, vicreg_covariance=0.9)    # weights
SLICES, SEED = 21, 5    # SIGReg's directions
LR, DECAY, CLIP, EMA = 0.01, 1e-2, 5.0, 0.996
VARIANCE_FLOOR, RANK_FLOOR, RANK_WEIGHT, KL_WEIGHT, SIGMA = 0.4, 7.0, 0.5, 0.3, 0.5
TOLERANCE = {"o": 2e-5, "l": 2e-5, "g": 1e-4, "s": 1e-3, "st": 2e-5}   # relative to the max


def layers(w):
    """Autocast for layers with float32 weights (peer_observed_mixed.py), and nothing for float64."""
    return torch.autocast("cpu", torch.bfloat16,
                          enabled=next(iter(w.values())).dtype == torch.float32)


def two_layers(x, w, name):
    with layers(w):
        h = F.relu(F.linear(x, w[f"{name}.0.weight"], w[f"{name}.0.bias"]))
        h = F.linear(h, w[f"{name}.2.weight"], w[f"{name}.2.bias"])
    return h.to(w[f"{name}.2.weight"].dtype)


def encode(x, w, sizes, mean, scale):
    """Returns the context of states (B,n) or images (B,height*width*channels)."""
    if sizes["encoder"] == "image":
        h, wd, c = (int(sizes[k]) for k in ("height", "width", "channels"))
        image = (x.reshape(-1, h, wd, c) / 255 - mean) / scale
        # patch layers are channels-last convolutions with stride equal to the kernel size
        for layer, outputs in (("0", int(sizes["patch_in"])), ("2", int(sizes["patch_out"]))):
            weight = w[f"encoder.patch.{layer}.weight"].reshape(outputs, 4, 4, -1).permute(0, 3, 1, 2)
            with layers(w):
                image = F.conv2d(image.permute(0, 3, 1, 2), weight,
                                 w[f"encoder.patch.{layer}.bias"], stride=4)
            image = F.relu(image).permute(0, 2, 3, 1)
        features = image.flatten(1)
    else:
        x = (x - mean) / scale
        features = [x]
        for octave in range(int(sizes["octaves"])):
            angle = math.pi / 4 * 2 ** octave * x[:, :int(sizes["waves"])]
            features += [angle.sin(), angle.cos()]
        features = torch.cat(features, 1)
    return two_layers(F.relu(two_layers(features, w, "encoder.mlp")), w, "encoder.proj")


def distance(a, b):
    return (a - b).norm(dim=-1)


def predict(c, z, w, sizes, eps):
    """Returns latents (B,L,D), logits (B,K) and the divergence (B) for the context with its action."""
    kind, K = sizes["model"], int(sizes["atoms"])
    if kind == "variational":
        m_p, s_p = two_layers(c, w, "prior").chunk(2, 1)
        m_q, s_q = two_layers(torch.cat([c, z], 1), w, "posterior").chunk(2, 1)
        draw = m_q + s_q.exp() * eps
        u = two_layers(torch.cat([c, draw], 1), w, "generator")
        kl = torch.distributions.kl_divergence(torch.distributions.Normal(m_q, s_q.exp()),
                                               torch.distributions.Normal(m_p, s_p.exp())).sum(1)
        return F.normalize(u, dim=-1)[:, None], c.new_zeros(len(c), 1), kl
    if kind == "codebook":
        u = two_layers(c, w, "atom")[:, None]
    else:
        u = torch.stack([two_layers(c, w, f"atoms.{k}") for k in range(K)], 1)
    routed = "router.0.weight" in w
    logits = two_layers(c, w, "router") if routed else c.new_zeros(len(c), 1)
    return F.normalize(u, dim=-1), logits, None


def floors(context):
    n = F.normalize(context, dim=-1)
    n = n - n.mean(0)
    variance = F.relu(VARIANCE_FLOOR - (n.square().mean(0) + 1e-4).sqrt()).mean()
    covariance = n.T @ n / len(n)
    participation = covariance.trace() ** 2 / covariance.square().sum()
    return variance, F.relu(RANK_FLOOR - participation) / RANK_FLOOR, participation


def loss_of(context, action, z, w, meta, eps, step):
    c = context if action is None else torch.cat([context, action], 1)
    u, logits, kl = predict(c, z, w, meta, eps)
    pi, kind = logits.softmax(-1), meta["objective"]
    away = distance(u, z[:, None])
    part = dict.fromkeys(LOSSES, torch.zeros((), dtype=u.dtype))
    if kind == "specialization":
        winner = away.argmin(1)
        part["latent"] = away.gather(1, winner[:, None]).mean()
        part["router"] = F.cross_entropy(logits, winner)
        total = part["latent"] + part["router"]
    elif kind == "mdn":
        log = -0.5 * away.square() / SIGMA ** 2 - z.shape[1] * math.log(SIGMA * math.sqrt(2 * math.pi))
        total = part["latent"] = -torch.logsumexp(logits.log_softmax(-1) + log, 1).mean()
        mean = pi.mean(0)
        part["usage"] = (mean * (mean * len(mean)).log()).sum()
    elif kind == "fused":
        total = part["latent"] = distance(F.normalize((pi[..., None] * u).sum(1), dim=-1), z).mean()
    elif kind == "variational":
        part["latent"], part["usage"] = away[:, 0].mean(), kl.mean()
        total = part["latent"] + KL_WEIGHT * part["usage"]
    else:    # Energy Score
        between = (u[:, :, None] - u[:, None]).square().sum(-1)
        between = torch.where(between > 0, between, torch.ones(())).sqrt() * (between > 0)
        total = part["latent"] = ((pi * away).sum(1)
                                  - 0.5 * (pi[:, :, None] * pi[:, None] * between).sum((1, 2))).mean()
    if float(meta["floor"]):
        part["variance"], part["rank"], part["participation"] = floors(context)
        total = total + float(meta["floor"]) * (part["variance"] + RANK_WEIGHT * part["rank"])
    if int(meta["regularized"]):
        directions = regularizers.directions(SEED, step, SLICES, context.shape[1])
        part["sigreg"] = regularizers.sigreg(context, directions)
        part["vicreg_variance"] = regularizers.vicreg_variance(context)
        part["vicreg_covariance"] = regularizers.vicreg_covariance(context)
        total = total + sum(weight * part[term] for term, weight in REGULARIZERS.items())
    part["total"] = total
    return part, dict(context=context, atoms=u.flatten(0, 1), logits=logits, target=z)


def recompute(tensors, meta):
    """Computes all results in the file from its weights and inputs."""
    of = lambda prefix: {k[len(prefix):]: v for k, v in tensors.items() if k.startswith(prefix)}
    w, target, x = of("w."), of("t."), of("x.")
    mean, scale = w["input.mean"], w["input.scale"]
    trained = {k: v.clone().requires_grad_() for k, v in w.items() if f"g.{k}" in tensors}
    fixed = {k: v for k, v in w.items() if k not in trained}
    optimizer = torch.optim.AdamW(trained.values(), lr=LR, weight_decay=DECAY)
    found = {}
    for step in range(3):
        optimizer.zero_grad()
        with torch.no_grad():
            z = F.normalize(encode(x["next"], target, meta, mean, scale), dim=-1)
        context = encode(x["state"], trained, meta, mean, scale)
        part, out = loss_of(context, x.get("action"), z, {**trained, **fixed}, meta,
                            x.get(f"eps{step}"), step)
        part["total"].backward()
        norm = torch.nn.utils.clip_grad_norm_(trained.values(), math.inf)
        if step == 0:
            part["grad_norm"] = norm
            found |= {f"o.{k}": v.detach() for k, v in out.items()}
            found |= {f"g.{k}": v.grad.clone() for k, v in trained.items()}
            found["l.all"] = torch.stack([part[k].detach().double() for k in LOSSES])
        torch.nn.utils.clip_grad_norm_(trained.values(), CLIP)
        optimizer.step()
        target = {k: EMA * v + (1 - EMA) * trained[k].detach() for k, v in target.items()}
    found |= {f"s.{k}": v.detach() for k, v in {**trained, **fixed}.items()}
    return found | {f"st.{k}": v for k, v in target.items()}


def compare(path: Path, swap: bool) -> int:
    with safe_open(path, "pt") as file:
        tensors = {k: file.get_tensor(k).double() for k in file.keys()}
        meta = file.metadata()
    stated = {k: v for k, v in tensors.items() if k.split(".")[0] in TOLERANCE}
    if swap:
        tensors["x.next"][[0, 1]] = tensors["x.next"][[1, 0]]
    found, failed, worst = recompute(tensors, meta), 0, dict.fromkeys(TOLERANCE, 0.0)
    if found.keys() != stated.keys():
        print(f"the file and PyTorch differ in {sorted(found.keys() ^ stated.keys())}")
        return 1
    for name, expected in found.items():
        group = name.split(".")[0]
        size = max(float(expected.abs().max()), 1e-3)
        error = float((stated[name] - expected).abs().max()) / size
        worst[group] = max(worst[group], error)
        if not error <= TOLERANCE[group]:
            failed += 1
            if not swap:
                print(f"  {name}: off by {error:.1e} of its largest entry")
    print("  " + "  ".join(f"{k} {v:.1e}" for k, v in worst.items()))
    return failed


def main() -> int:
    tool, failed = os.environ.get("TEST_OBSERVED"), 0
    if not tool:
        print("the environment variable TEST_OBSERVED must name the program", file=sys.stderr)
        return 1
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.safetensors"
        for case in CASES:
            subprocess.run([tool, "export", case, path], check=True)
            print(f"{case}:")
            failed += compare(path, swap=False)
            print(f"{case}, two targets swapped: must differ")
            failed += compare(path, swap=True) == 0
    print(f"{failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
