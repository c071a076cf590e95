"""From points to curves: the rate at a recall, and ratios taken round by round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import median
from typing import Any

RECALLS = (0.90, 0.95, 0.99)


@dataclass(frozen=True)
class Rate:
    """Queries a second at a recall. `above`: the lowest setting already finds more than was asked for."""

    qps: float
    above: bool = False


def frontier(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Of (recall, rate), those that no other beats in both, by rising recall and falling rate."""
    best: list[tuple[float, float]] = []
    for recall, rate in sorted(points, key=lambda point: (-point[0], -point[1])):
        if not best or rate > best[-1][1]:
            best.append((recall, rate))
    return best[::-1]


def at(points: Sequence[tuple[float, float]], recall: float) -> Rate | None:
    """The rate at `recall`, its logarithm interpolated between neighbouring settings; None if none finds so much."""
    best = frontier(points)
    if not best or best[-1][0] < recall:
        return None
    if best[0][0] >= recall:
        return Rate(best[0][1], above=best[0][0] > recall)
    for (low, fast), (high, slow) in zip(best, best[1:], strict=False):
        if low <= recall <= high:
            share = (recall - low) / (high - low)
            return Rate(exp(log(fast) + share * (log(slow) - log(fast))))
    return None


def pairs(points: Sequence[dict[str, Any]], figure: str) -> list[tuple[float, float]]:
    """(recall, rate) of the points that have this figure."""
    return [(point["recall"], point[figure]) for point in points if point.get(figure)]


@dataclass(frozen=True)
class Ratio:
    """The median of the ratios of the rounds, and their range. `above` as in `Rate`, of either side."""

    middle: float
    low: float
    high: float
    above: bool


def ratio(
    rounds: Sequence[Sequence[dict[str, Any]]],
    others: Sequence[Sequence[dict[str, Any]]],
    recall: float,
    figure: str = "qps",
) -> Ratio | None:
    """One system's rate by another's, of the same rounds; None if either does not reach this recall."""
    found = []
    above = False
    for ours, theirs in zip(rounds, others, strict=False):
        mine, their = at(pairs(ours, figure), recall), at(pairs(theirs, figure), recall)
        if mine is None or their is None:
            return None
        above = above or mine.above or their.above
        found.append(mine.qps / their.qps)
    return Ratio(median(found), min(found), max(found), above) if found else None


def middle(rounds: Sequence[Sequence[dict[str, Any]]], recall: float, figure: str = "qps") -> Rate | None:
    """The median rate of the rounds at this recall."""
    rates = [at(pairs(points, figure), recall) for points in rounds]
    if not rates or None in rates:
        return None
    return Rate(median(rate.qps for rate in rates), any(rate.above for rate in rates))


def medians(rounds: Sequence[Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
    """A point for each breadth, each figure the median of the rounds that have it."""
    by_effort: dict[int, list[dict[str, Any]]] = {}
    for point in (point for points in rounds for point in points):
        by_effort.setdefault(point["effort"], []).append(point)
    out = []
    for effort, points in sorted(by_effort.items()):
        names = dict.fromkeys(name for point in points for name in point if name != "effort")
        values = {name: [point[name] for point in points if point.get(name) is not None] for name in names}
        out.append(
            {"effort": effort} | {name: median(some) if some else None for name, some in values.items()}
        )
    return out
