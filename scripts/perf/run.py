"""One run of the load test: the servers, the data, and the truth about what the dataset holds."""

from __future__ import annotations

from argparse import Namespace

import numpy as np

from .client import Servers, Skipped, dataset_ticket, get, row_count
from .data import Mixture, Spec
from .exact import Truth, truth_of


class Run:
    """What every test of one dataset shares."""

    def __init__(self, servers: Servers, args: Namespace, spec: Spec, name: str) -> None:
        self.servers, self.args, self.spec, self.name = servers, args, spec, name
        self.mixture = Mixture(spec)
        # When the first byte was sent (time.perf_counter), None where nothing was put.
        self.put_started: float | None = None
        self._truth: Truth | None = None

    def truth(self) -> Truth:
        """What the dataset holds: as generated if the server has just these rows, else downloaded."""
        if self._truth is None:
            if self._as_generated():
                vectors = self.mixture.vectors(self.spec.rows)
                self._truth = Truth(list(range(self.spec.rows)), vectors, self.spec.metric)
            else:
                print(f"downloading {self.name}: the truth for recall is what the server holds")
                table = get(self.servers.data, dataset_ticket(self.name))
                self._truth = truth_of(table, self.spec.metric)
        return self._truth

    def _as_generated(self) -> bool:
        if self.args.skip_put:
            return False
        try:
            return row_count(self.servers, self.name) == self.spec.rows
        except Skipped:
            return False

    def queries(self, count: int) -> tuple[np.ndarray, list[str]]:
        """Held-out points of the mixture; for a dataset of other data, its rows moved by 5 % of their spread."""
        vectors, texts = self.mixture.queries(count)
        truth = self.truth()
        if len(truth.ids) == 0 or self._generated(truth):
            return vectors, texts
        rng = np.random.default_rng(self.spec.seed)
        rows = truth.vectors[rng.integers(0, len(truth.ids), count)]
        step = 0.05 * rows.std(axis=0, dtype=np.float64)
        moved = rows + step * rng.standard_normal(rows.shape)
        return moved.astype(rows.dtype), texts

    def _generated(self, truth: Truth) -> bool:
        if 0 not in truth.ids[:100_000] or truth.vectors.shape[1] != self.spec.width:
            return False
        return bool((truth.vectors[truth.ids.index(0)] == self.mixture.block(0)[1][0]).all())


def plain_vector(vector: np.ndarray) -> list[float]:
    """A vector as JSON numbers of the fewest digits that give the same float32 back."""
    if vector.dtype.kind in "iu":
        return [int(x) for x in vector]
    return [float(f"{x:.9g}") for x in vector.astype(np.float64)]
