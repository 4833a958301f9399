#!/usr/bin/env python3
"""Compares bjepa eval with the PyTorch reference in float64.

    BJEPA=bjepa TEST_EVALUATOR=test_eval_evaluator python3 tests/eval/peer_eval.py

test_evaluator trains small models of every kind for a few steps on simulated scenes. This script reads
cache, model and training state without our code, and computes prediction, target latents and metrics with
scripts/reference. Everything that `bjepa eval --json` prints about all scenes, about each maneuver and about
usage, calibration, health, attention and exchanged parts must agree. If the online encoder replaces the
target encoder, the latent Energy Score must differ.
Exit codes: 0 equal, 1 different, 77 skipped because PyTorch or safetensors is not installed.
"""
from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Iterator

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
try:
    import torch
    from safetensors import safe_open
except ImportError as error:
    print(f"skipped: {error}; this test needs the Python packages torch and safetensors")
    sys.exit(77)

from reference import metrics as measure                           # noqa: E402
from reference.network import gru, mlp, part, predict, target_latent  # noqa: E402
from reference.sizes import Sizes                                  # noqa: E402

SCENES = 150
MASK = (1 << 64) - 1
PARTS = dict(map=("polylines", "pmask"), neighbors=("neighbors", "nmask"), focal=("focal",))
TOLERANCE = 1e-5      # relative, because one side is in single precision
FLOOR = 1e-2          # min denominator, because single-precision weights sum to 1 only up to 1e-7
KINDS = ("branch", "point", "outputonly", "uniform")
NAMES = ("stop", "straight", "left", "right")


def read(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    with safe_open(path, "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}


def read_cache(path: Path, count: int) -> dict[str, torch.Tensor]:
    """Returns the first scenes as padded float64 arrays in the layout of docs/DATA.md."""
    t, _ = read(path)
    batch = dict(focal=torch.zeros(count, 50, 7), neighbors=torch.zeros(count, 16, 50, 7),
                 nmask=torch.zeros(count, 16, dtype=torch.bool),
                 polylines=torch.zeros(count, 48, 10, 6),
                 pmask=torch.zeros(count, 48, dtype=torch.bool),
                 future=t["future"][:count].reshape(count, 60, 2))
    for s in range(count):
        n, p = int(t["neighbors"][s]), int(t["polylines"][s])
        start = int(t["record_start"][s])
        record = t["records"].flatten()[start:start + 350 * (1 + n) + 60 * p]
        batch["focal"][s] = record[:350].reshape(50, 7)
        batch["neighbors"][s, :n] = record[350:350 * (1 + n)].reshape(n, 50, 7)
        batch["polylines"][s, :p] = record[350 * (1 + n):].reshape(p, 10, 6)
        batch["nmask"][s, :n] = True
        batch["pmask"][s, :p] = True
    return {key: value.double() if value.is_floating_point() else value
            for key, value in batch.items()}


def splitmix(state: int) -> tuple[int, int]:
    """Returns the next state and its output."""
    state = (state + 0x9e3779b97f4a7c15) & MASK
    x = (state ^ state >> 30) * 0xbf58476d1ce4e5b9 & MASK
    x = (x ^ x >> 27) * 0x94d049bb133111eb & MASK
    return state, x ^ x >> 31


def generator(seed: int, name: str) -> Iterator[int]:
    """Returns xoshiro256++ of a seed and a name, as described in docs/DATA.md."""
    digest = 0xcbf29ce484222325
    for byte in name.encode():
        digest = (digest ^ byte) * 0x100000001b3 & MASK
    state, s = splitmix(seed)[1] ^ digest, [0] * 4
    for i in range(4):
        state, s[i] = splitmix(state)

    def rotate(x: int, by: int) -> int:
        return (x << by | x >> (64 - by)) & MASK

    while True:
        yield (rotate((s[0] + s[3]) & MASK, 23) + s[0]) & MASK
        shifted = s[1] << 17 & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= shifted
        s[3] = rotate(s[3], 45)


def partners(count: int) -> list[int]:
    """Returns the partners of the scenes, as defined in docs/EVALUATE.md."""
    numbers, result = generator(1, "exchange"), list(range(count))
    for i in range(count - 1, 0, -1):
        r = next(numbers)
        while r >= (1 << 64) // i * i:
            r = next(numbers)
        result[i], result[r % i] = result[r % i], result[i]
    return result


def attention_entropy(params: dict[str, torch.Tensor], batch: dict[str, torch.Tensor],
                      heads: int) -> float:
    """Returns the mean entropy of the attention weights of PyTorch's attention layer."""
    query = gru(params, batch["focal"])
    tokens = torch.cat([mlp(params, "neighbor", batch["neighbors"].flatten(2)),
                        mlp(params, "polyline", batch["polylines"].flatten(2))], 1)
    nmask = batch["nmask"].clone()
    nmask[:, 0] |= ~nmask.any(1)
    absent = ~torch.cat([nmask, batch["pmask"]], 1)
    _, share = torch.nn.functional.multi_head_attention_forward(
        query[None], tokens.transpose(0, 1), tokens.transpose(0, 1), query.shape[1], heads,
        params["attn.in_proj_weight"], params["attn.in_proj_bias"], None, None, False, 0.0,
        params["attn.out_proj.weight"], params["attn.out_proj.bias"], training=False,
        key_padding_mask=absent, need_weights=True, average_attn_weights=False)
    return float(torch.special.entr(share).sum(-1).mean())


class Reference:
    """Returns the outputs of a checkpoint for the scenes."""

    def __init__(self, folder: Path, batch: dict[str, torch.Tensor]) -> None:
        params, facts = read(folder / "model.safetensors")
        state, _ = read(folder / "state.safetensors")
        self.sizes = Sizes.from_metadata(facts)
        params = {name: value.double() for name, value in params.items()}
        prediction = predict(params, batch, self.sizes)
        self.uniform = facts["weighting"] == "uniform"
        self.weight = self.weights(prediction.logits)
        self.atoms, self.decoded = prediction.atoms, prediction.decoded
        self.future = batch["future"]
        self.norm = float(torch.linalg.vector_norm(prediction.context, dim=-1).mean())
        self.entropy = attention_entropy(part(params, "encoder"), batch, self.sizes.heads)
        self.exchanged = {name: self.exchange(params, batch, keys) for name, keys in PARTS.items()}
        target = {name: value.double() for name, value in part(state, "target").items()}
        self.target = target_latent(target, batch, self.sizes)
        self.online = target_latent(part(params, "encoder"), batch, self.sizes)

    def weights(self, logits: torch.Tensor) -> torch.Tensor:
        weight = logits.softmax(-1)
        return torch.full_like(weight, 1 / weight.shape[1]) if self.uniform else weight

    def exchange(self, params: dict[str, torch.Tensor], batch: dict[str, torch.Tensor],
                 keys: tuple[str, ...]) -> float:
        """Returns the trajectory Energy Score if these arrays are replaced by those of the partners."""
        mixed = dict(batch, **{key: batch[key][partners(SCENES)] for key in keys})
        p = predict(params, mixed, self.sizes)
        return measure.metrics(p.atoms, self.weights(p.logits), p.decoded,
                               torch.zeros_like(p.atoms[:, 0]), batch["future"])["traj_es"]

    def metrics(self, pick: torch.Tensor, target: torch.Tensor | None = None) -> dict[str, float]:
        target = self.target if target is None else target
        means = measure.metrics(self.atoms[pick], self.weight[pick], self.decoded[pick],
                                target[pick], self.future[pick])
        return dict(means, **self.leaderboard(pick))

    def leaderboard(self, pick: torch.Tensor) -> dict[str, float]:
        """Returns the leaderboard metrics for K = 1 and the six most probable branches."""
        weight, order = self.weight[pick].sort(dim=1, descending=True, stable=True)
        weight, order = weight[:, :6], order[:, :6]
        away = (self.decoded[pick] - self.future[pick][:, None]).norm(dim=-1)    # (B,K,F)
        ade, fde = (x.gather(1, order) for x in (away.mean(-1), away[..., -1]))
        least, nearest = fde.min(dim=1)
        chosen = weight.gather(1, nearest[:, None])[:, 0]
        values = {"min_ade_6": ade.min(dim=1).values, "min_fde_6": least,
                  "mr_6": (least > measure.MISS_RADIUS).double(),
                  "brier_min_fde_1": fde[:, 0] + (1 - weight[:, 0]) ** 2,
                  "brier_min_fde_6": least + (1 - chosen) ** 2}
        return {name: float(value.mean()) for name, value in values.items()}

    def clearance(self) -> float:
        return measure.clearance(self.atoms, self.weight, self.decoded, self.future)

    def bins(self) -> list[tuple[float, float, float]]:
        mass = measure.maneuver_mass(self.weight, self.decoded[:, :, -1])
        confidence, guess = mass.max(-1)
        hit = (guess == measure.maneuver(self.future[:, -1])).double()
        index = (confidence * 10).long().clamp(max=9)
        return [(int((index == i).sum()), float(confidence[index == i].mean()),
                 float(hit[index == i].mean())) for i in range(10)]


class Comparison:
    def __init__(self) -> None:
        self.compared = self.failed = 0
        self.worst = 0.0

    def same(self, name: str, found: float | None, expected: float | None) -> None:
        self.compared += 1
        if expected is None or math.isnan(expected):
            good, off = found is None, 0.0
        elif found is None:
            good, off = False, math.inf
        else:
            off = abs(found - expected) / max(abs(expected), FLOOR)
            good = off <= TOLERANCE
        self.worst = max(self.worst, off)
        if not good:
            self.failed += 1
            print(f"  {name}: {found}, expected {expected}")


def compare(kind: str, report: dict, ref: Reference) -> int:
    c = Comparison()
    everything = torch.ones(SCENES, dtype=torch.bool)
    truth = measure.maneuver(ref.future[:, -1])
    assert report["schema"] == "branchjepa.eval/1" and report["scenes"] == SCENES
    expected = ref.metrics(everything)
    for name, value in report["metrics"].items():
        c.same(name, value, expected.get(name))
    assert set(expected) <= set(report["metrics"])
    groups = {g["key"]: g for g in report["groups"] if g["by"] == "maneuver"}
    for i, key in enumerate(NAMES):
        pick = truth == i
        if not pick.any():
            assert key not in groups
            continue
        assert groups[key]["scenes"] == int(pick.sum())
        expected_group = ref.metrics(pick)
        for name, value in groups[key]["metrics"].items():
            c.same(f"{key}: {name}", value, expected_group.get(name))
    for k, share in enumerate(ref.weight.mean(0).tolist()):
        c.same(f"usage {k}", report["usage"][k], share)
    for i, (count, confidence, hits) in enumerate(ref.bins()):
        found = report["calibration"][i]
        c.same(f"bin {i}: scenes", found["scenes"], count)
        c.same(f"bin {i}: confidence", found["confidence"], confidence)
        c.same(f"bin {i}: hits", found["hits"], hits)
    spread = measure.anchor_metrics(ref.target)
    spectrum = torch.linalg.eigvalsh(torch.cov(ref.target.T, correction=0))
    spread["participation"] = float(spectrum.sum() ** 2 / spectrum.square().sum())
    for name, value in report["health"].items():
        c.same(f"health: {name}", value, spread[name])
    c.same("attention tokens", report["encoder"]["attention_tokens"], math.exp(ref.entropy))
    c.same("context norm", report["encoder"]["context_norm"], ref.norm)
    plain = report["exchange"]["plain"]
    c.same("exchange: plain", plain, expected["traj_es"])
    for name, score in ref.exchanged.items():
        c.same(f"exchange: {name}", plain + report["exchange"][name], score)
        if kind == "branch" and abs(score - expected["traj_es"]) <= 10 * TOLERANCE * score:
            print(f"  the exchanged {name} cannot be told from the plain scenes")
            c.failed += 1
    # sanity check of the test: another target must give another value
    other = ref.metrics(everything, ref.online)["latent_es"]
    if abs(other - expected["latent_es"]) <= 10 * TOLERANCE * expected["latent_es"]:
        print("  the target cannot be told from the online encoder")
        c.failed += 1
    print(f"{kind}: {c.compared} numbers, {c.failed} off, worst {c.worst:.1e}; "
          f"clearance {ref.clearance():.1e}")
    return c.failed


def main() -> int:
    bjepa, tool = os.environ.get("BJEPA"), os.environ.get("TEST_EVALUATOR")
    if not bjepa or not tool:
        print("the environment variables BJEPA and TEST_EVALUATOR must name the programs",
              file=sys.stderr)
        return 2
    torch.set_num_threads(1)
    cache = Path("world.bjc")
    subprocess.run([bjepa, "simulate", "--cache", cache, "--scenes", str(SCENES + 10), "--seed",
                    "11"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    batch = read_cache(cache, SCENES)
    failed = 0
    for kind in KINDS:
        folder = Path(f"run_{kind}")
        subprocess.run([tool, "make", cache, folder, kind], check=True)
        report = subprocess.run([bjepa, "eval", folder, "--data", cache, "--limit", str(SCENES),
                                 "-j", "2", "--json"], check=True, capture_output=True).stdout
        failed += compare(kind, json.loads(report), Reference(folder, batch))
    print(f"{failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
