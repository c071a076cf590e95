"""LanceDB in this process, by its synchronous interface."""

from __future__ import annotations

from typing import Any

import lancedb
import numpy as np
import pyarrow as pa
from condition import Condition

from .database import K, Database

#: With no more values than this an attribute gets a bitmap each.
BITMAP_VALUES = 100


class LanceDb(Database):
    """IVF_HNSW_SQ of one partition: a graph over 8-bit codes."""

    packages = ("lancedb",)
    settings = "IVF_HNSW_SQ, 1 partition, m=16, ef_construction=200"
    acknowledged = "a new version of the table, which it does not sync"
    batch = 10_000
    sweep = (10, 20, 40, 80, 160, 320)

    def create(self, rows: int) -> None:
        vector = pa.list_(pa.float32(), self.dim)
        fields = [(name, pa.int32()) for name in self.attributes]
        schema = pa.schema([("id", pa.int64()), ("vector", vector), *fields])
        self.table = lancedb.connect(str(self.folder)).create_table("rows", schema=schema)

    def open(self) -> None:
        self.table = lancedb.connect(str(self.folder)).open_table("rows")

    def insert(self, first: int, vectors: np.ndarray) -> None:
        self.table.add(self._rows(first, vectors))

    def replace(self, first: int, vectors: np.ndarray) -> None:
        merge = self.table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        merge.execute(self._rows(first, vectors))

    def index(self) -> None:
        self.table.create_index(
            metric=self._metric(),
            vector_column_name="vector",
            index_type="IVF_HNSW_SQ",
            num_partitions=1,
            m=16,
            ef_construction=200,
        )
        for name, column in self.attributes.items():
            few = len(np.unique(column)) <= BITMAP_VALUES
            self.table.create_scalar_index(name, index_type="BITMAP" if few else "BTREE")

    def effort(self, breadth: int) -> None:
        self.breadth = breadth

    def search(self, query: np.ndarray) -> Any:
        return self._found(self.table.search(query, vector_column_name="vector"))

    def search_where(self, query: np.ndarray, condition: Condition) -> Any:
        return self._found(self.table.search(query, vector_column_name="vector").where(condition.sql()))

    def delete(self, first: int, count: int) -> None:
        self.table.delete(f"id >= {first} AND id < {first + count}")

    def _found(self, asked: Any) -> Any:
        asked = asked.distance_type(self._metric())
        # Without _distance among the columns it prints a warning for each query.
        found = asked.limit(K).ef(self.breadth).select(["id", "_distance"]).to_arrow()
        return found["id"].to_numpy()

    def _metric(self) -> Any:
        return "l2" if self.metric == "euclidean" else "cosine"

    def _rows(self, first: int, vectors: np.ndarray) -> pa.Table:
        flat = pa.array(vectors.reshape(-1))
        column = pa.FixedSizeListArray.from_arrays(flat, self.dim)
        ids = pa.array(range(first, first + len(vectors)), pa.int64())
        return pa.table({"id": ids, "vector": column, **self.columns(first, len(vectors))})
