"""faiss (Douze et al., 2024): no database, an index with filters."""

from __future__ import annotations

from functools import cache
from typing import Any

import faiss
import numpy as np
from condition import Condition

from .database import K, Database


class Faiss(Database):
    """HNSW over whole vectors, in memory. Where the metric is cosine, vectors of unit length have the same order."""

    packages = ("faiss-cpu",)
    settings = "HNSW, M=16, efConstruction=200; the bits of a filter are made once and kept"
    acknowledged = "nothing: it is in memory"

    def create(self, rows: int) -> None:
        self.graph = faiss.IndexHNSWFlat(self.dim, 16)
        self.graph.hnsw.efConstruction = 200

    def insert(self, first: int, vectors: np.ndarray) -> None:
        self.graph.add(vectors)

    def effort(self, breadth: int) -> None:
        self.breadth = breadth
        self.how = faiss.SearchParametersHNSW(efSearch=breadth)

    def search(self, query: np.ndarray) -> Any:
        return self.graph.search(query[None], K, params=self.how)[1][0]

    def search_where(self, query: np.ndarray, condition: Condition) -> Any:
        how = faiss.SearchParametersHNSW(efSearch=self.breadth, sel=self._allowed(condition))
        return self.graph.search(query[None], K, params=how)[1][0]

    @cache  # noqa: B019 - as long as the process
    def _allowed(self, condition: Condition) -> Any:
        bits = np.packbits(condition.passes(self.attributes), bitorder="little")
        return faiss.IDSelectorBitmap(bits)
