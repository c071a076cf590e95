"""The data of the recipe: uniform noise, a fifth of whose updates drift. Nothing in it can be clustered."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

#: Neighbours that are asked for.
K = 10


@dataclass(frozen=True)
class Recipe:
    """Rows, batches of updates to them, and queries."""

    base: np.ndarray
    update_ids: np.ndarray
    updates: np.ndarray
    queries: np.ndarray

    @staticmethod
    def made(dim: int, base: int, updates: int, queries: int, seed: int) -> Recipe:
        """Elements between -1 and 1; of every fifth update the second half is 2.5 times as large."""
        dice = np.random.default_rng(seed)

        def uniform(rows: int) -> np.ndarray:
            return dice.uniform(-1, 1, (rows, dim)).astype(np.float32)

        first, ids, changed = uniform(base), dice.integers(0, base, updates), uniform(updates)
        changed[dice.random(updates) < 0.2, dim // 2 :] *= 2.5
        return Recipe(first, ids, changed, uniform(queries))

    @staticmethod
    def read(path: Path) -> Recipe:
        """A file of JSON: ``base`` [{id, values}], ``updates`` [[id, values]], ``queries`` [values]."""
        told = json.loads(path.read_text())
        base = sorted(told["base"], key=lambda row: row["id"])
        if [row["id"] for row in base] != list(range(len(base))):
            raise SystemExit(f"{path}: ids of the base must be 0, 1, 2…")
        ids, updates = zip(*told["updates"], strict=True)
        return Recipe(
            np.array([row["values"] for row in base], np.float32),
            np.array(ids, np.int64),
            np.array(updates, np.float32),
            np.array(told["queries"], np.float32),
        )

    def save(self, path: Path) -> None:
        np.savez(
            path,
            base=self.base,
            update_ids=self.update_ids,
            updates=self.updates,
            queries=self.queries,
        )

    @staticmethod
    def load(path: Path) -> Recipe:
        with np.load(path) as arrays:
            return Recipe(**{name: arrays[name] for name in arrays.files})

    def batches(self, size: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Ids and vectors of each batch; of one id in it, the last."""
        found = []
        for first in range(0, len(self.updates), size):
            ids = self.update_ids[first : first + size]
            last = {int(row): place for place, row in enumerate(ids)}
            places = np.array(sorted(last.values())) + first
            found.append((self.update_ids[places], self.updates[places]))
        return found

    def truth(self) -> np.ndarray:
        """The ids of the nearest rows of each query once all updates are in; of equals, the smaller id first."""
        rows = self.base.astype(np.float64)
        # One by one: of several updates of an id the last counts.
        for row, vector in zip(self.update_ids, self.updates, strict=True):
            rows[row] = vector
        queries = self.queries.astype(np.float64)
        distances = (rows**2).sum(1) - 2 * queries @ rows.T
        return np.argsort(distances, axis=1, kind="stable")[:, :K]


def recall(found: list[np.ndarray], truth: np.ndarray) -> float:
    """Mean share of the true neighbours that were found."""
    hits = sum(len(np.intersect1d(ids, true)) for ids, true in zip(found, truth, strict=True))
    return hits / truth.size
