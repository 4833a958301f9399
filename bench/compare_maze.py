#!/usr/bin/env python3
"""Measures one update of the state model of the mazes in PyTorch and in bjepa, and prints the ratio.

    compare_maze.py --bjepa build/bjepa --data pointmaze-medium-navigate-v0.npz

An update has 64 transitions, eight branches, winner takes all, latents of 512 numbers, variance and
rank floors, clipping at 5, AdamW and the moving average of the target, in float32 with two threads.
PyTorch uses torch.nn, autograd and torch.optim.AdamW without further optimization. Rounds alternate, so
that noise of the machine affects both programs. A result is the median over rounds.
tests/train/peer_observed.py compares the results of the two programs.

Exit codes: 0 success, 1 bjepa failed, 77 PyTorch is not installed.
"""
from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

try:
    import torch
    from torch import nn
    import torch.nn.functional as F
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

K, D, H, E, BATCH, OCTAVES = 8, 512, 512, 256, 64, 4
FLOOR, VARIANCE_FLOOR, RANK_FLOOR, RANK_WEIGHT = 10, 0.04, 24, 0.25


def two_layers(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mlp, self.proj = two_layers(2 + 4 * OCTAVES, E, E), two_layers(E, D, D)

    def forward(self, x):
        angles = [math.pi / 4 * 2 ** j * x for j in range(OCTAVES)]
        features = torch.cat([x] + [f(a) for a in angles for f in (torch.sin, torch.cos)], 1)
        return self.proj(self.mlp(features).relu())


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = Encoder()
        self.atoms = nn.ModuleList(two_layers(D, H, D) for _ in range(K))
        self.router = two_layers(D, 256, K)


def floors(context):
    n = F.normalize(context, dim=-1)
    n = n - n.mean(0)
    variance = F.relu(VARIANCE_FLOOR - (n.square().mean(0) + 1e-4).sqrt()).mean()
    products = n @ n.T    # a matrix of the size of the batch, which is cheaper for the rank
    rank = products.trace() ** 2 / products.square().sum()
    return FLOOR * (variance + RANK_WEIGHT * F.relu(RANK_FLOOR - rank) / RANK_FLOOR)


class Peer:
    def __init__(self) -> None:
        self.model, self.target = Model(), Encoder()
        self.target.load_state_dict(self.model.encoder.state_dict())
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4, weight_decay=1e-2)
        self.states = torch.randn(100000, 2)

    def update(self) -> None:
        rows = torch.randint(len(self.states), (2, BATCH))
        with torch.no_grad():
            z = F.normalize(self.target(self.states[rows[1]]), dim=-1)
        context = self.model.encoder(self.states[rows[0]])
        u = F.normalize(torch.stack([atom(context) for atom in self.model.atoms], 1), dim=-1)
        away = (u - z[:, None]).norm(dim=-1)
        winner = away.argmin(1)
        loss = (away.gather(1, winner[:, None]).mean()
                + F.cross_entropy(self.model.router(context), winner) + floors(context))
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 5)
        self.optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(self.target.parameters(), self.model.encoder.parameters()):
                slow.lerp_(fast, 1 - 0.996)

    def seconds(self, updates: int) -> float:
        start = time.perf_counter()
        for _ in range(updates):
            self.update()
        return (time.perf_counter() - start) / updates


def ours(bjepa: str, data: str, maze: str | None, updates: int, threads: int) -> float:
    """Returns the seconds of an update from the training speed that the run measured."""
    with tempfile.TemporaryDirectory() as folder:
        command = [bjepa, "train", "--data", data, "--arm", "maze-branch", "--out", f"{folder}/run",
                   "--threads", str(threads), "--quiet", "--set", f"train.updates={updates}",
                   "--set", "train.epochs=1"] + (["--maze", maze] if maze else [])
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode not in (0, 4):    # 4 means that the run was too short to separate the latents
            raise RuntimeError(done.stderr)
        rows = [json.loads(line) for line in Path(folder, "run/metrics.jsonl").read_text().splitlines()]
        return BATCH / rows[-1]["scenes_per_s"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bjepa", default="build/bjepa")
    parser.add_argument("--data", required=True)
    parser.add_argument("--maze")
    parser.add_argument("--updates", type=int, default=200, help="of a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    peer = Peer()
    peer.seconds(10)
    times: dict[str, list[float]] = {"PyTorch": [], "bjepa": []}
    for _ in range(args.rounds):
        times["PyTorch"].append(peer.seconds(args.updates))
        try:
            times["bjepa"].append(ours(args.bjepa, args.data, args.maze, args.updates, args.threads))
        except RuntimeError as error:
            print(error, file=sys.stderr)
            return 1
    median = {name: statistics.median(values) for name, values in times.items()}
    for name, value in median.items():
        print(f"{name:8} {1e3 * value:8.2f} ms an update, 30,000 in {30000 * value / 60:5.1f} min")
    print(f"ratio    {median['PyTorch'] / median['bjepa']:8.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
