#!/usr/bin/env python3
"""Writes golden files of the mazes: NumPy archives with inputs and the results of the reference.

    scripts/make_maze_golden.py tests/golden/maze --seed 1

src/verify/maze_parity.h lists the arrays. Mazes are invented, latents are random unit vectors, and
candidates are mixtures of cells that they should hit, cells that they should miss, and noise. A draw with a
cosine closer than 1e-3 to the threshold is replaced by the next draw, unless it is exactly at the threshold.
"""
from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from reference import graphs


def random_map(rng, rows: int, cols: int) -> np.ndarray:
    """Returns a maze with walls around it and in a third of the inner squares."""
    walls = np.ones((rows, cols), np.int32)
    walls[1:-1, 1:-1] = rng.random((rows - 2, cols - 2)) < 0.33
    walls[1, 1] = 0
    return walls


def map_edges(walls: np.ndarray) -> np.ndarray:
    number = {tuple(s): k for k, s in enumerate(np.argwhere(walls == 0))}
    edges = [(k, number[i + di, j + dj]) for (i, j), k in number.items()
             for di, dj in ((-1, 0), (0, -1), (0, 1), (1, 0)) if (i + di, j + dj) in number]
    return np.array(sorted(edges), np.int32).reshape(-1, 2)


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def queries(rng, edges, cells: int, count: int) -> np.ndarray:
    true = {(int(u), int(v)) for u, v in edges}
    pairs = [(s, t) for s in range(cells) for t in sorted(graphs.reached(true, s)) if t != s]
    chosen = np.sort(rng.choice(len(pairs), min(count, len(pairs)), replace=False))
    return np.array(pairs, np.int32).reshape(-1, 2)[chosen]


def draw_graph(rng, walls, K: int, D: int, some: bool, plan: int, verified: int) -> dict:
    edges = map_edges(walls)
    cells = int((walls == 0).sum())
    latents = unit(rng.normal(size=(cells, D)))
    sources = np.arange(cells)
    if some:
        sources = np.sort(rng.choice(cells, 2 * cells // 3, replace=False))
        sources = np.append(sources, sources[:2])        # two sources in one cell
    candidates = np.zeros((len(sources), K, D))
    for s, u in enumerate(sources):
        successors = edges[edges[:, 0] == u, 1]
        for k in range(K):
            kind = rng.random()
            if kind < 0.6 and len(successors):
                goal = latents[rng.choice(successors)]
            elif kind < 0.75:
                goal = latents[rng.integers(cells)]
            elif kind < 0.85:
                goal = latents[u]
            else:
                goal = np.zeros(D)
            candidates[s, k] = goal + rng.normal(size=D) * rng.choice([0.1, 0.3]) / np.sqrt(D) * 2
        if rng.random() < 0.2:
            candidates[s, rng.integers(K)] = 0           # a zero vector gives no edge
    order = rng.permutation(len(edges)).astype(np.int32)
    kept, held = graphs.withhold(edges, order)
    return dict(candidates=(candidates * 3).astype(np.float32), cells=latents.astype(np.float32),
                sources=sources.astype(np.int32), true_edges=edges, edge_order=order,
                kept_edges=kept, held_edges=held, plan_queries=queries(rng, edges, cells, plan),
                verified_queries=queries(rng, edges, cells, verified))


def on_the_threshold() -> dict:
    """Returns a case with four cells on the axes, in which a cosine of exactly one half must not count."""
    cells = np.eye(4, dtype=np.float32) * 2
    candidates = np.array([[[1, 1, 1, 1], [0, 3, 0, 0]],       # cosine 0.5 with all cells; edge 0 -> 1
                           [[0, 1.25, 1.25, 0], [0, 0, 0, 0]],  # edges 1 -> 1, 2
                           [[-1, 0, -1, 0], [1, 1, -1, 1]],     # opposite direction; half of the others
                           [[0, 0, 1, 0], [0, 0, 0, 0.5]]], np.float32)
    edges = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [3, 2]], np.int32)
    order = np.array([4, 0, 1, 2, 3], np.int32)
    kept, held = graphs.withhold(edges, order)
    pairs = np.array([[0, 1], [0, 2], [0, 3], [1, 2], [2, 3], [3, 2]], np.int32)
    return dict(candidates=candidates, cells=cells, sources=np.arange(4, dtype=np.int32),
                true_edges=edges, edge_order=order, kept_edges=kept, held_edges=held,
                plan_queries=pairs, verified_queries=pairs[:5])


def graph_case(rng, *settings) -> dict:
    while True:
        case = draw_graph(rng, *settings)
        if graphs.margin(case["candidates"], case["cells"]) > 1e-3:
            return case


def walk_case(rng) -> dict:
    """Returns random walks that also leave the free squares, including an episode without an end."""
    walls, steps = random_map(rng, 7, 8), []
    for _ in range(12):
        at = rng.choice(np.argwhere(walls == 0))[::-1] * 4.0 - 4
        for _ in range(30):
            move = rng.choice([[0, 2.1], [0, -2.1], [2.1, 0], [-2.1, 0]])
            at = at + move + rng.normal(size=2) * 0.1
            steps.append(at.copy())
    terminals = np.arange(1, 361) % 30 == 0
    terminals[-1] = False
    xy = np.array(steps).astype(np.float32)
    found = graphs.walk(xy, terminals, walls)
    order = rng.permutation(len(found["edges"])).astype(np.int32)
    kept, held = graphs.withhold(found["edges"], order)
    return dict(xy=xy, terminals=terminals, maze_map=walls, edge_order=order,
                **{f"expected_{k}": v for k, v in found.items()}, expected_kept=kept,
                expected_held=held)


def frames_case(rng, cells: int = 6, K: int = 3, D: int = 9, episodes: int = 10) -> dict:
    while True:
        centers = unit(rng.normal(size=(cells, D)))
        at = rng.integers(-1, cells - 1, size=(episodes, 12))     # the last cell stays empty
        following = np.full(at.shape, -1)
        following[:, :-1] = at[:, 1:]
        at, following = at.ravel(), following.ravel()
        targets = (centers[at] + rng.normal(size=(len(at), D)) * 0.15).astype(np.float32)
        goals = rng.integers(cells, size=(len(at), K))
        candidates = (centers[goals] + rng.normal(size=(len(at), K, D)) * 0.2).astype(np.float32)
        means = np.stack([targets[at == v].astype(np.float64).mean(0) if (at == v).any()
                          else np.zeros(D) for v in range(cells)])
        if graphs.margin(candidates, means) > 1e-4:
            break
    cov, per = graphs.frame_coverage(at, following, targets, candidates, cells)
    return dict(frame_cells=at.astype(np.int32), frame_next=following.astype(np.int64),
                frame_targets=targets, frame_candidates=candidates, expected_cov_r=np.float64(cov),
                expected_cov_r_per_cell=per)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    options.out.mkdir(parents=True, exist_ok=True)
    cases = {"threshold": on_the_threshold(),
             "small_k3": graph_case(rng, random_map(rng, 6, 7), 3, 16, False, 40, 30),
             "some_k1": graph_case(rng, random_map(rng, 7, 7), 1, 11, True, 50, 50),
             "wide_k8": graph_case(rng, random_map(rng, 6, 6), 8, 33, True, 300, 300)}
    for case in cases.values():
        case.update({f"expected_{k}": v for k, v in graphs.score(case).items()})
    cases["walk"] = walk_case(rng)
    cases["frames"] = frames_case(rng)
    for name, case in cases.items():
        write = np.savez_compressed if name in ("walk", "wide_k8") else np.savez
        write(options.out / f"{name}.npz", **case)
        print(f"{name}: {len(case)} arrays")


if __name__ == "__main__":
    main()
