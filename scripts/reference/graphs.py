"""Graph metrics of the mazes in NumPy, as defined in docs/MAZES.md.

A graph is a set of (from, to) pairs, and a search is a closure over sets. The C code uses matrices and
queues. The two implementations differ on purpose, so that their agreement is meaningful.
"""
from __future__ import annotations

import numpy as np

THRESHOLD = 0.5
WITHHELD = 0.2


def hits(candidates: np.ndarray, latents: np.ndarray) -> np.ndarray:
    """Returns which of the vectors (C,D) are hit by some candidate (K,D)."""
    found = np.zeros(len(latents), bool)
    for v, z in enumerate(latents.astype(np.float64)):
        for u in candidates.astype(np.float64):
            scale = np.linalg.norm(u) * np.linalg.norm(z)
            found[v] |= bool(scale > 0 and (u @ z) / scale > THRESHOLD)
    return found


def margin(candidates: np.ndarray, latents: np.ndarray) -> float:
    """Returns the distance of the closest cosine from the threshold, ignoring cosines of exactly 0.5."""
    u = candidates.reshape(-1, candidates.shape[-1]).astype(np.float64)
    z = latents.astype(np.float64)
    scale = np.linalg.norm(u, axis=1)[:, None] * np.linalg.norm(z, axis=1)[None]
    cosine = np.divide(u @ z.T, scale, out=np.zeros_like(scale), where=scale > 0)
    off = np.abs(cosine - THRESHOLD)
    return float(off[off > 0].min())


def reached(edges: set, start: int) -> set:
    """Returns the cells that can be reached from start, including start."""
    inside, grown = set(), {start}
    while grown:
        inside |= grown
        grown = {v for u, v in edges if u in grown} - inside
    return inside


def routes(edges: set, queries: np.ndarray) -> np.ndarray:
    return np.array([int(t) in reached(edges, int(s)) for s, t in queries], bool)


def mean(values) -> float:
    values = [float(v) for v in values if not np.isnan(v)]
    return sum(values) / len(values) if values else float("nan")


def precision(predicted: set, true: set, cells: int, self_loops: bool) -> np.ndarray:
    out = np.full(cells, np.nan)
    for u in range(cells):
        mine = {(a, b) for a, b in predicted if a == u and (self_loops or a != b)}
        if mine:
            out[u] = len({e for e in mine & true if e[0] != e[1]}) / len(mine)
    return out


def withhold(edges: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the kept and the withheld edges, each in the given order."""
    want = int(np.floor(WITHHELD * len(edges) + 1e-9))
    held: list[int] = []
    for k in order:
        others = [i for i in range(len(edges)) if edges[i][0] == edges[k][0] and i not in held]
        if len(held) < want and len(others) > 1:
            held.append(int(k))
    mask = np.isin(np.arange(len(edges)), held)
    return edges[~mask], edges[mask]


def score(case: dict) -> dict:
    """Returns every expected_ array of a graph case."""
    cells, sources = case["cells"], case["sources"]
    true = {(int(u), int(v)) for u, v in case["true_edges"]}
    found = [hits(c, cells) for c in case["candidates"]]
    predicted = {(int(u), int(v)) for u, hit in zip(sources, found) for v in np.flatnonzero(hit)}
    edges = {(u, v) for u, v in predicted if u != v}
    plan = routes(predicted, case["plan_queries"])
    verified = routes(predicted & true, case["verified_queries"])
    per = precision(predicted, true, len(cells), False)
    per_self = precision(predicted, true, len(cells), True)
    cover = np.full(len(sources), np.nan)
    for s, u in enumerate(sources):
        successors = [v for a, v in true if a == u]
        if successors:
            cover[s] = sum(bool(found[s][v]) for v in successors) / len(successors)
    matrix = np.zeros((len(cells), len(cells)), np.uint8)
    for u, v in predicted:
        matrix[u, v] = 1
    held = [tuple(map(int, e)) in predicted for e in case["held_edges"]]
    return dict(predicted=matrix, predicted_edges=np.int32(len(edges)),
                sources_with_edges=np.int32(len({u for u, _ in edges})),
                plan_all=np.float64(mean(plan)), plan_hit=plan.astype(np.uint8),
                verified_route=np.float64(mean(verified)), verified_hit=verified.astype(np.uint8),
                macro_precision=np.float64(mean(per)), precision_per_cell=per,
                macro_precision_self=np.float64(mean(per_self)), precision_self_per_cell=per_self,
                held_recall=np.float64(mean(held)), cov_r=np.float64(mean(cover)),
                cov_r_per_source=cover)


def walk(xy: np.ndarray, terminals: np.ndarray, maze_map: np.ndarray) -> dict:
    """Returns the cells of the positions, and the edges between them with their counts."""
    number = {tuple(s): k for k, s in enumerate(np.argwhere(maze_map == 0))}
    cells, counts, last = [], {}, None
    for (x, y), ends in zip(xy.astype(np.float64), terminals):
        cell = number.get((int(np.floor((y + 6) / 4)), int(np.floor((x + 6) / 4))), -1)
        cells.append(cell)
        if cell >= 0:
            if last is not None and last != cell:
                counts[last, cell] = counts.get((last, cell), 0) + 1
            last = cell
        if ends:
            last = None
    edges = sorted(counts)
    return dict(cells=np.array(cells, np.int32), edges=np.array(edges, np.int32).reshape(-1, 2),
                counts=np.array([counts[e] for e in edges], np.int32))


def frame_coverage(cells: np.ndarray, following: np.ndarray, targets: np.ndarray,
                   candidates: np.ndarray, count: int) -> tuple[float, np.ndarray]:
    """Returns raw COV-R over frames: the mean, and one number per cell."""
    latents = np.zeros((count, targets.shape[1]))
    for v in range(count):
        if (cells == v).any():
            m = targets[cells == v].astype(np.float64).mean(0)
            latents[v] = m / max(np.linalg.norm(m), 1e-300)
    per = np.full(count, np.nan)
    for u in range(count):
        frames = np.flatnonzero((cells == u) & (following >= 0))
        successors = np.unique(following[frames])
        if len(frames):
            per[u] = mean(hits(candidates[t], latents[successors]).mean() for t in frames)
    return mean(per), per
