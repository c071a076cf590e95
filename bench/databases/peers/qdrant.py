"""Qdrant's shard engine in this process (Qdrant Edge)."""

from __future__ import annotations

from typing import Any

import numpy as np
import qdrant_edge as edge
from condition import Condition

from .database import K, Database


class Qdrant(Database):
    """One shard, HNSW over whole vectors."""

    packages = ("qdrant-edge-py",)
    settings = "m=16, ef_construct=200, one segment after optimize(), all else by default"
    acknowledged = "in its log, which it does not sync (documented: durable after flush())"

    def create(self, rows: int) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        distance = edge.Distance.Euclid if self.metric == "euclidean" else edge.Distance.Cosine
        config = edge.EdgeConfig(
            vectors=edge.EdgeVectorParams(self.dim, distance),
            hnsw_config=edge.HnswIndexConfig(16, 200, 10),
            optimizers=edge.EdgeOptimizersConfig(default_segment_number=1, indexing_threshold=1),
        )
        self.shard = edge.EdgeShard.create(str(self.folder), config)
        for name in self.attributes:
            self.shard.update(edge.UpdateOperation.create_field_index(name, edge.PayloadSchemaType.Integer))

    def open(self) -> None:
        self.shard = edge.EdgeShard.load(str(self.folder))

    def insert(self, first: int, vectors: np.ndarray) -> None:
        columns = self.columns(first, len(vectors))
        named = zip(*(column.tolist() for column in columns.values()), strict=True)
        payloads = [dict(zip(columns, values, strict=True)) for values in named] or [None] * len(vectors)
        rows = zip(vectors.tolist(), payloads, strict=True)
        points = [edge.Point(first + n, vector, payload) for n, (vector, payload) in enumerate(rows)]
        self.shard.update(edge.UpdateOperation.upsert_points(points))

    replace = insert

    def index(self) -> None:
        while self.shard.optimize():
            pass

    def effort(self, breadth: int) -> None:
        self.how = edge.SearchParams(hnsw_ef=breadth)

    def search(self, query: np.ndarray) -> Any:
        nearest = edge.Query.Nearest(query)
        found = self.shard.search(edge.SearchRequest(nearest, K, params=self.how))
        return [point.id for point in found]

    def search_where(self, query: np.ndarray, condition: Condition) -> Any:
        if condition.comparison == "=":
            field = edge.FieldCondition(condition.field, match=edge.MatchValue(condition.value))
        else:
            bound = {"<": "lt", ">=": "gte"}[condition.comparison]
            field = edge.FieldCondition(condition.field, range=edge.RangeFloat(**{bound: condition.value}))
        only = edge.Filter(must=[field])
        nearest = edge.Query.Nearest(query)
        found = self.shard.search(edge.SearchRequest(nearest, K, filter=only, params=self.how))
        return [point.id for point in found]

    def search_many(self, queries: np.ndarray) -> Any:
        asked = [edge.QueryRequest(K, query=edge.Query.Nearest(query), params=self.how) for query in queries]
        found = self.shard.query_batch(edge.QueryBatchRequest(asked))
        return [[point.id for point in points] for points in found]

    def delete(self, first: int, count: int) -> None:
        self.shard.update(edge.UpdateOperation.delete_points(list(range(first, first + count))))

    def close(self) -> None:
        self.shard.flush()
        self.shard.close()
