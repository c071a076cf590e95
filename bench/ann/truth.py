"""The true nearest neighbours, and recall against them.

A shortlist comes from one matrix product in float32; the distances that decide are computed again in float64. Were a
shortlist so tight that rounding could have kept a true neighbour out of it, it is made longer.
"""

from __future__ import annotations

import numpy as np

EUCLIDEAN = "euclidean"
COSINE = "cosine"
DEPTH = 100
QUERIES_AT_ONCE = 50
# What a hit's distance may exceed that of the k-th true neighbour by: equal distances come in any order.
TIE = 1e-6


def nearest(base: np.ndarray, queries: np.ndarray, metric: str, depth: int = DEPTH) -> np.ndarray:
    """Row numbers int32 `[queries, depth]`, nearest first, ties by the smaller row. Cosine wants vectors of unit length."""
    depth = min(depth, len(base))
    lengths = np.einsum("ij,ij->i", base, base, dtype=np.float64)
    out = np.empty((len(queries), depth), dtype=np.int32)
    for at in range(0, len(queries), QUERIES_AT_ONCE):
        block = queries[at : at + QUERIES_AT_ONCE]
        rough = lengths.astype(np.float32)[None, :] - 2 * (block @ base.T)
        for row, query in enumerate(block):
            out[at + row] = _exact(base, query, rough[row], lengths, metric, depth)
    return out


def _exact(
    base: np.ndarray, query: np.ndarray, rough: np.ndarray, lengths: np.ndarray, metric: str, depth: int
) -> np.ndarray:
    """The `depth` nearest of one query, from distances that float32 rounded (all less the query's own square)."""
    square = float(query.astype(np.float64) @ query.astype(np.float64))
    # A float32 product of this length is off by less, whatever the order of its additions.
    slack = 1e-6 * base.shape[1] ** 0.5 * (float(lengths.max()) + square)
    wide = min(2 * depth, len(base))
    while True:
        short = np.argpartition(rough, wide - 1)[:wide] if wide < len(base) else np.arange(len(base))
        exact = distances(base[short], query, metric)
        order = np.lexsort((short, exact))[:depth]
        last = exact[order[-1]] * (2 if metric == COSINE else 1)
        if wide == len(base) or rough[short].max() + square - slack > last:
            return short[order].astype(np.int32)
        wide = min(2 * wide, len(base))


def distances(rows: np.ndarray, query: np.ndarray, metric: str) -> np.ndarray:
    """Squared L2, or 1 - cos of unit vectors, in float64."""
    difference = rows.astype(np.float64) - query.astype(np.float64)
    squared = np.einsum("ij,ij->i", difference, difference)
    # Of unit vectors, |a - b|^2 = 2 (1 - cos); the difference loses no digits where they are near.
    return squared / 2 if metric == COSINE else squared


def recall(
    found: np.ndarray, truth: np.ndarray, base: np.ndarray, queries: np.ndarray, metric: str, k: int
) -> float:
    """The share of the `k` nearest that was found; a row as near as the k-th true one counts. Rows of -1 are none."""
    hits = 0
    for ids, true, query in zip(found[:, :k], truth, queries, strict=True):
        limit = distances(base[true[k - 1 : k]], query, metric)[0] * (1 + TIE)
        real = np.unique(ids[ids >= 0])
        hits += min(k, int((distances(base[real], query, metric) <= limit).sum()))
    return hits / (k * len(queries))
