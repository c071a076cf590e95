"""Alternating rounds: the two sides take turns at going first, and the ratio is taken pair by pair.

A shared machine drifts by tens of percent within minutes. Two figures taken one right after the other share
the drift, so their ratio holds where neither figure does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any


@dataclass
class Pairs:
    """Measurements of two sides, in pairs, under the names `ours` and `peer`."""

    ours: str
    peer: str
    unit: str
    first: list[float] = field(default_factory=list)
    second: list[float] = field(default_factory=list)

    def ratios(self) -> list[float]:
        """Ours over the peer's, pair by pair."""
        return [a / b for a, b in zip(self.first, self.second, strict=True)]

    def summary(self) -> dict[str, Any]:
        """Medians, the median of the ratios with their range, and every round."""
        ratios = self.ratios()
        return {
            "unit": self.unit,
            self.ours: _round(median(self.first)),
            self.peer: _round(median(self.second)),
            "ratio": _round(median(ratios)),
            "ratio_range": [_round(min(ratios)), _round(max(ratios))],
            "rounds": {
                self.ours: [_round(value) for value in self.first],
                self.peer: [_round(value) for value in self.second],
            },
        }


def alternate(
    rounds: int,
    ours: Callable[[int], float],
    peer: Callable[[int], float],
    names: tuple[str, str],
    unit: str,
) -> Pairs:
    """Measures both sides `rounds` times; odd rounds begin with the peer."""
    pairs = Pairs(*names, unit)
    for number in range(rounds):
        if number % 2 == 0:
            first = ours(number)
            second = peer(number)
        else:
            second = peer(number)
            first = ours(number)
        pairs.first.append(first)
        pairs.second.append(second)
    return pairs


def _round(value: float) -> float:
    return float(f"{value:.4g}")
