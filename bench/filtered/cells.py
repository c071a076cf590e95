"""The filters of the recall report: what passes is independent of the query, near it, or far from it.

Of exactly as many rows as wanted: the rows are numbered by chance (`by_chance`), and by their distance from each of a few
rows that were chosen by chance, the anchors (`from_0`, `from_1`, …).

| attribute | relation | the rows that pass |
|---|---|---|
| `by_chance` | independent | anywhere |
| `near_anchor` | correlated | around the query's own anchor, which is the nearest to it |
| `near_other` | opposed | around the anchor that is furthest from the query |
| `far_rows` | opposed | those furthest from the query's own anchor |

Of the rows that real attributes have: equal to the query's own value (correlated), or to another (opposed); and with the
shortest glosses, which says little about where they are.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent / "ann"))

import attributes
import truth
from condition import Condition

ANCHORS = 8
SHARES = (0.01, 0.1, 1.0, 10.0, 50.0, 90.0)
#: Attributes of which a row has one of a few values.
CLASSES = ("label", "part_of_speech")


@dataclass(frozen=True)
class Cell:
    """A filter for each query. `relation`: independent, correlated or opposed."""

    attribute: str
    relation: str
    conditions: Sequence[Condition]


@dataclass(frozen=True)
class Anchors:
    """The anchors of a set: each row's place by distance from each, and each query's nearest and furthest."""

    columns: attributes.Columns
    nearest: np.ndarray
    furthest: np.ndarray


def anchors(base: np.ndarray, queries: np.ndarray, metric: str) -> Anchors:
    """Chosen by a fixed seed."""
    rng = np.random.default_rng(attributes.SEED)
    chosen = base[np.sort(rng.choice(len(base), ANCHORS, replace=False))]
    columns = {"by_chance": rng.permutation(len(base)).astype(np.int32)}
    far = np.stack([truth.distances(queries, anchor, metric) for anchor in chosen], axis=1)
    for number, anchor in enumerate(chosen):
        # Less the anchor's own square, which changes no order.
        distance = np.einsum("ij,ij->i", base, base) - 2 * (base @ anchor)
        place = np.empty(len(base), np.int32)
        place[np.argsort(distance, kind="stable")] = np.arange(len(base), dtype=np.int32)
        columns[f"from_{number}"] = place
    return Anchors(columns, far.argmin(axis=1), far.argmax(axis=1))


def exact_shares(around: Anchors, rows: int, shares: Sequence[float]) -> Iterator[Cell]:
    """Cells that pass so many per cent of the rows, at least one row."""
    for share in shares:
        passing = max(1, round(rows * share / 100))
        count = len(around.nearest)
        yield Cell("by_chance", "independent", [Condition("by_chance", "<", passing)] * count)
        near, other, far = (
            [Condition(f"from_{anchor}", comparison, bound) for anchor in which]
            for which, comparison, bound in (
                (around.nearest, "<", passing),
                (around.furthest, "<", passing),
                (around.nearest, ">=", rows - passing),
            )
        )
        yield Cell("near_anchor", "correlated", near)
        yield Cell("near_other", "opposed", other)
        yield Cell("far_rows", "opposed", far)


def real(known: attributes.Attributes, shares: Sequence[float]) -> Iterator[Cell]:
    """Cells of the attributes that the set has itself."""
    for field in CLASSES:
        if field in known.rows:
            for relation, values in (
                ("correlated", known.queries[field]),
                ("opposed", attributes.others(known, field)),
            ):
                yield Cell(field, relation, [Condition(field, "=", int(value)) for value in values])
    if "gloss_length" in known.rows:
        lengths = np.sort(known.rows["gloss_length"])
        for share in shares:
            # One more than the length that so many rows have at most, so that some row passes.
            bound = int(lengths[max(1, round(len(lengths) * share / 100)) - 1]) + 1
            count = len(known.queries["gloss_length"])
            yield Cell("gloss_length", "independent", [Condition("gloss_length", "<", bound)] * count)
