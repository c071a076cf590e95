"""What a filter asks of a row: one comparison, which each system writes in its own way."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

COMPARISONS = {"=": operator.eq, "<": operator.lt, ">=": operator.ge}


@dataclass(frozen=True)
class Condition:
    """`field` compared with a whole number, by one of `COMPARISONS`."""

    field: str
    comparison: str
    value: int

    def passes(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """For each row whether it passes."""
        found: np.ndarray = COMPARISONS[self.comparison](columns[self.field], self.value)
        return found

    def sql(self) -> str:
        """As SQL, and as what is like it."""
        return f"{self.field} {self.comparison} {self.value}"
