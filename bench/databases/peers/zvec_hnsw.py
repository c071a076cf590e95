"""zvec, Alibaba's database in a process."""

from __future__ import annotations

from typing import Any

import numpy as np
import zvec
from condition import Condition

from .database import K, Database


class Zvec(Database):
    """HNSW over whole vectors."""

    packages = ("zvec",)
    settings = "m=16, ef_construction=200, all else by default"
    acknowledged = "in its log, which it does not sync"

    def parameters(self) -> Any:
        """Of the index."""
        return zvec.HnswIndexParam(self._metric(), m=16, ef_construction=200)

    def create(self, rows: int) -> None:
        vector = zvec.VectorSchema("v", zvec.DataType.VECTOR_FP32, self.dim, index_param=self.parameters())
        index = zvec.InvertIndexParam(enable_range_optimization=True)
        fields = [zvec.FieldSchema(name, zvec.DataType.INT32, index_param=index) for name in self.attributes]
        schema = zvec.CollectionSchema(name="rows", fields=fields or None, vectors=vector)
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self.collection = zvec.create_and_open(path=str(self.folder), schema=schema)

    def open(self) -> None:
        self.collection = zvec.open(path=str(self.folder))

    def insert(self, first: int, vectors: np.ndarray) -> None:
        columns = {name: column.tolist() for name, column in self.columns(first, len(vectors)).items()}
        docs = [
            zvec.Doc(
                id=str(first + n),
                vectors={"v": vector},
                fields={name: column[n] for name, column in columns.items()},
            )
            for n, vector in enumerate(vectors)
        ]
        refused = [status for status in self.collection.upsert(docs) if not status.ok()]
        if refused:
            raise RuntimeError(f"{len(refused)} rows refused: {refused[0]}")

    replace = insert

    def index(self) -> None:
        self.collection.optimize()

    def effort(self, breadth: int) -> None:
        self.how = zvec.HnswQueryParam(ef=breadth)

    def search(self, query: np.ndarray) -> Any:
        found = self.collection.query(zvec.Query(field_name="v", vector=query, param=self.how), topk=K)
        return [int(doc.id) for doc in found]

    def search_where(self, query: np.ndarray, condition: Condition) -> Any:
        asked = zvec.Query(field_name="v", vector=query, param=self.how)
        # Ids alone: by default every field comes back.
        found = self.collection.query(asked, topk=K, filter=condition.sql(), output_fields=[])
        return [int(doc.id) for doc in found]

    def delete(self, first: int, count: int) -> None:
        self.collection.delete([str(one) for one in range(first, first + count)])

    def close(self) -> None:
        self.collection.flush()
        del self.collection

    def _metric(self) -> Any:
        return zvec.MetricType.L2 if self.metric == "euclidean" else zvec.MetricType.COSINE


class ZvecRabitq(Zvec):
    """HNSW over RaBitQ codes."""

    settings = "HnswRabitq: m=16, ef_construction=200, 7 bits, all else by default"

    def parameters(self) -> Any:
        return zvec.HnswRabitqIndexParam(self._metric(), m=16, ef_construction=200)

    def effort(self, breadth: int) -> None:
        self.how = zvec.HnswRabitqQueryParam(ef=breadth)
