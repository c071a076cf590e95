"""The true nearest neighbours among the rows that pass a filter, and how an answer is judged by them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent / "ann"))

import truth
from condition import Condition

K = 10


def by_condition(conditions: Sequence[Condition]) -> Iterator[tuple[Condition, np.ndarray]]:
    """Each condition once, with the queries that have it."""
    places: dict[Condition, list[int]] = {}
    for query, condition in enumerate(conditions):
        places.setdefault(condition, []).append(query)
    for condition, queries in places.items():
        yield condition, np.array(queries)


def nearest(
    base: np.ndarray,
    queries: np.ndarray,
    conditions: Sequence[Condition],
    columns: Mapping[str, np.ndarray],
    metric: str,
) -> np.ndarray:
    """Row numbers int32 `[queries, K]`, nearest first; -1 where fewer rows pass."""
    found = np.full((len(queries), K), -1, np.int32)
    for condition, asked in by_condition(conditions):
        rows = np.flatnonzero(condition.passes(columns))
        if len(rows):
            near = truth.nearest(base[rows], queries[asked], metric, depth=K)
            found[asked, : near.shape[1]] = rows[near]
    return found


def judged(
    found: np.ndarray,
    true: np.ndarray,
    base: np.ndarray,
    queries: np.ndarray,
    metric: str,
    allowed: Mapping[Condition, np.ndarray],
    conditions: Sequence[Condition],
) -> dict[str, Any]:
    """Recall@K; how many answers are short of what passes; how many rows do not pass and are there all the same.

    `found` and `true` are `[queries, K]`, -1 where there is none; `allowed` has the rows that pass each condition. Found
    is a row that passes and is as near as the last true one.
    """
    hits = wanted = short = wrong = 0
    for ids, near, query, condition in zip(found, true, queries, conditions, strict=True):
        near = near[near >= 0]
        real = np.unique(ids[ids >= 0])
        passing = real[allowed[condition][real]]
        wrong += len(real) - len(passing)
        short += len(real) < len(near)
        wanted += len(near)
        if len(near) and len(passing):
            limit = truth.distances(base[near[-1:]], query, metric)[0] * (1 + truth.TIE)
            hits += min(len(near), int((truth.distances(base[passing], query, metric) <= limit).sum()))
    return {"recall": hits / wanted if wanted else 1.0, "short": short, "wrong": wrong}
