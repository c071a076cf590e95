"""Vectors around centres that drift while they come, or around those of a file; and the exact nearest of some queries."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

#: Neighbours that are asked for.
K = 10
#: Rows that are made at a time.
CHUNK = 20_000


@dataclass(frozen=True)
class Mixture:
    """A mixture of Gaussians: the same rows for the same figures, whoever makes them."""

    rows: int
    dim: int
    centres: int
    queries: int
    #: A file of vectors in place of centres, which do not drift.
    source: str | None = None
    seed: int = 7

    @staticmethod
    def load(path: Path) -> Mixture:
        return Mixture(**json.loads(path.read_text()))

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    def chunks(self) -> Iterator[tuple[int, np.ndarray]]:
        """The first row's number and the rows of each piece."""
        dice, places = np.random.default_rng(self.seed), self._places()
        for first in range(0, self.rows, CHUNK):
            yield (
                first,
                self._around(places, dice, min(CHUNK, self.rows - first), first / self.rows),
            )

    def questions(self) -> np.ndarray:
        """Queries, of the last state."""
        return self._around(self._places(), np.random.default_rng(self.seed + 1), self.queries, 1.0)

    def _places(self) -> tuple[np.ndarray, np.ndarray, float]:
        """The centres, how far each drifts in all, and the standard deviation of a row's elements about its centre."""
        if self.source is not None:
            vectors = np.load(self.source, mmap_mode="r")
            # Three tenths of their length, all elements together.
            noise = 0.3 * float(np.linalg.norm(vectors[:1_000], axis=1).mean()) / self.dim**0.5
            return vectors, np.zeros((1, self.dim), np.float32), noise
        own = np.random.default_rng(self.seed + 2)
        begin, drift = own.standard_normal((2, self.centres, self.dim), dtype=np.float32)
        return begin, drift, 0.5

    def _around(
        self,
        places: tuple[np.ndarray, np.ndarray, float],
        dice: np.random.Generator,
        rows: int,
        moment: float,
    ) -> np.ndarray:
        begin, drift, noise = places
        chosen = dice.integers(0, len(begin), rows)
        moved = begin[chosen] + np.float32(moment) * drift[chosen % len(drift)]
        return moved + np.float32(noise) * dice.standard_normal((rows, self.dim), dtype=np.float32)


def truth(mixture: Mixture) -> np.ndarray:
    """The numbers of the nearest rows of each query, in no order."""
    queries = mixture.questions()
    ids = np.empty((len(queries), 0), np.int64)
    distances = np.empty((len(queries), 0), np.float32)
    for first, rows in mixture.chunks():
        found = (rows**2).sum(1) - 2 * queries @ rows.T
        numbers = np.broadcast_to(np.arange(first, first + len(rows)), found.shape)
        distances = np.concatenate([distances, found], 1)
        ids = np.concatenate([ids, numbers], 1)
        nearest = np.argpartition(distances, K - 1, axis=1)[:, :K]
        distances = np.take_along_axis(distances, nearest, 1)
        ids = np.take_along_axis(ids, nearest, 1)
    return ids
