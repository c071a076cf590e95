"""Exact nearest neighbours in numpy: the truth that recall is measured against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from .data import vectors_of

ROW_BLOCK = 16_384
# Candidates kept beyond k by the float32 pass, for the float64 pass to order.
SLACK = 32
# Row-query pairs worth computing for one truth: about ten seconds of one core at 128 dimensions.
PAIR_BUDGET = 2e8


@dataclass
class Truth:
    """Vectors with their ids, searched by brute force; distances are lower-is-better for each metric."""

    ids: list
    vectors: np.ndarray
    metric: str

    def distances(self, query: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Distances in float64 of a query to the rows at the given positions."""
        q = query.astype(np.float64)
        x = self.vectors[rows].astype(np.float64)
        if self.metric == "dot_product":
            return -(x @ q)
        if self.metric == "cosine":
            norms = np.linalg.norm(x, axis=1) * np.linalg.norm(q)
            return 1.0 - (x @ q) / np.where(norms == 0, 1.0, norms)
        return np.sqrt(((x - q) ** 2).sum(axis=1))

    def _rough(self, queries: np.ndarray, start: int, stop: int) -> np.ndarray:
        """Float32 keys that order like the distance, one row a query."""
        x = self.vectors[start:stop].astype(np.float32)
        products = queries @ x.T
        if self.metric == "dot_product":
            return -products
        norms = np.einsum("ij,ij->i", x, x)
        if self.metric == "cosine":
            return -products / np.sqrt(np.where(norms == 0, 1.0, norms))
        return norms - 2.0 * products

    def nearest(self, queries: np.ndarray, k: int, mask: np.ndarray | None = None) -> list[np.ndarray]:
        """Positions of the k nearest rows (best first) of each query, among the rows that `mask` allows."""
        queries32 = queries.astype(np.float32)
        keep = k + SLACK
        best_keys = np.full((len(queries), 0), np.inf, dtype=np.float32)
        best_rows = np.zeros((len(queries), 0), dtype=np.int64)
        for start in range(0, len(self.ids), ROW_BLOCK):
            stop = min(len(self.ids), start + ROW_BLOCK)
            keys = self._rough(queries32, start, stop)
            if mask is not None:
                keys[:, ~mask[start:stop]] = np.inf
            keys = np.concatenate([best_keys, keys], axis=1)
            rows = np.broadcast_to(np.arange(start, stop), (len(queries), stop - start))
            rows = np.concatenate([best_rows, rows], axis=1)
            if keys.shape[1] > keep:
                order = np.argpartition(keys, keep, axis=1)[:, :keep]
                keys = np.take_along_axis(keys, order, axis=1)
                rows = np.take_along_axis(rows, order, axis=1)
            best_keys, best_rows = keys, rows
        return [
            self._order(queries[i], best_rows[i][np.isfinite(best_keys[i])], k) for i in range(len(queries))
        ]

    def _order(self, query: np.ndarray, rows: np.ndarray, k: int) -> np.ndarray:
        return rows[np.argsort(self.distances(query, rows), kind="stable")[:k]]

    def recall(
        self,
        queries: np.ndarray,
        replies: list[list],
        k: int,
        mask: np.ndarray | None = None,
        own: list | None = None,
    ) -> float | None:
        """Mean recall@k of the replied ids; an id as near as the true k-th counts as right (ties).

        A reply may hold fewer than k ids: what is missing counts against it, up to the rows that exist.
        `own`, one id a query, is left out on both sides (a search by the id of a stored row, which may
        spend one of its k places on that row).
        """
        if not replies or not self.ids:
            return None
        positions = {row_id: position for position, row_id in enumerate(self.ids)}
        truth = self.nearest(queries[: len(replies)], k + (own is not None), mask)
        found = wanted = 0
        for number, (query, reply, true) in enumerate(zip(queries, replies, truth, strict=False)):
            rows = {positions[i] for i in reply if i in positions}
            if own is not None:
                self_position = positions[own[number]]
                room = k - (self_position in rows)
                rows.discard(self_position)
                true = true[true != self_position][:room]
            if len(true) == 0:
                continue
            found += min(self._right(query, rows, true[-1], mask), len(true))
            wanted += len(true)
        return found / wanted if wanted else None

    def _right(self, query: np.ndarray, rows: set[int], kth: int, mask: np.ndarray | None) -> int:
        """How many of the rows are allowed and no farther than the row `kth`."""
        allowed = np.array([row for row in sorted(rows) if mask is None or mask[row]], dtype=np.int64)
        bound = self.distances(query, np.array([kth]))[0]
        bound += 1e-6 * max(1.0, abs(bound))
        return int((self.distances(query, allowed) <= bound).sum())

    def affordable_queries(self, asked: int) -> int:
        """How many queries the truth is worth computing for, at least 100 where as many were asked."""
        return min(asked, max(100, int(PAIR_BUDGET / max(1, len(self.ids)))))


def truth_of(table: pa.Table, metric: str) -> Truth:
    """The truth of a downloaded table with the columns `id` and `vector`."""
    return Truth(table["id"].to_pylist(), vectors_of(table["vector"]), metric)
