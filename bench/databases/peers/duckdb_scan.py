"""DuckDB in this process: every row that passes is compared."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from condition import Condition

from .database import K, Database


class DuckDb(Database):
    """No index but DuckDB's own ranges of values a block of rows."""

    packages = ("duckdb",)
    settings = "an exact scan, all else by default"
    acknowledged = "committed: its log is synced"
    batch = 10_000
    sweep = (1,)

    def create(self, rows: int) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.base = duckdb.connect(str(self.folder / "rows.duckdb"))
        more = "".join(f", {name} INTEGER" for name in self.attributes)
        self.base.execute(f"CREATE TABLE rows (id INTEGER, v FLOAT[{self.dim}]{more})")
        self.distance = "array_distance" if self.metric == "euclidean" else "array_cosine_distance"

    def insert(self, first: int, vectors: np.ndarray) -> None:
        column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), self.dim)
        ids = pa.array(range(first, first + len(vectors)), pa.int32())
        rows = {"id": ids, "v": column, **self.columns(first, len(vectors))}
        self.base.register("fresh", pa.table(rows))
        self.base.execute("INSERT INTO rows SELECT * FROM fresh")
        self.base.unregister("fresh")

    def effort(self, breadth: int) -> None:
        """There is only one."""

    def search(self, query: np.ndarray) -> Any:
        return self._found("", query)

    def search_where(self, query: np.ndarray, condition: Condition) -> Any:
        return self._found(f"WHERE {condition.sql()} ", query)

    def close(self) -> None:
        self.base.close()

    def _found(self, where: str, query: np.ndarray) -> list[int]:
        order = f"ORDER BY {self.distance}(v, ?::FLOAT[{self.dim}])"
        found = self.base.execute(f"SELECT id FROM rows {where}{order} LIMIT {K}", [query])
        return [one for (one,) in found.fetchall()]
