"""hnswlib (Malkov and Yashunin, 2016): no database, the yardstick of its index."""

from __future__ import annotations

from functools import cache
from typing import Any

import hnswlib
import numpy as np
from condition import Condition

from .database import K, Database


class Hnswlib(Database):
    """One graph in memory, saved as a file."""

    packages = ("hnswlib",)
    settings = (
        "M=16, ef_construction=200, built with -march=native; rows are added by all cores, searched by one"
    )
    acknowledged = "nothing: it is in memory"

    def create(self, rows: int) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.index_of = hnswlib.Index(space="l2" if self.metric == "euclidean" else "cosine", dim=self.dim)
        self.index_of.init_index(max_elements=rows, M=16, ef_construction=200, random_seed=42)

    def open(self) -> None:
        self.create(1)
        self.index_of.load_index(str(self.folder / "index"))

    def insert(self, first: int, vectors: np.ndarray) -> None:
        self.index_of.add_items(vectors, np.arange(first, first + len(vectors)), num_threads=-1)

    replace = insert

    def effort(self, breadth: int) -> None:
        self.index_of.set_ef(breadth)

    def search(self, query: np.ndarray) -> Any:
        return self.index_of.knn_query(query, k=K, num_threads=1)[0][0]

    def search_where(self, query: np.ndarray, condition: Condition) -> Any:
        try:
            return self.index_of.knn_query(query, k=K, num_threads=1, filter=self._allowed(condition))[0][0]
        except RuntimeError:
            return []  # It refuses to answer with fewer than k.

    def search_many(self, queries: np.ndarray) -> Any:
        return self.index_of.knn_query(queries, k=K, num_threads=-1)[0]

    def delete(self, first: int, count: int) -> None:
        for one in range(first, first + count):
            self.index_of.mark_deleted(one)

    @cache  # noqa: B019 - as long as the process
    def _allowed(self, condition: Condition) -> Any:
        """Asked of each row that the walk meets; made once for each condition."""
        return condition.passes(self.attributes).tolist().__getitem__

    def close(self) -> None:
        self.index_of.save_index(str(self.folder / "index"))
