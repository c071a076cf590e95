"""Chroma in this process, on a folder."""

from __future__ import annotations

from typing import Any

import chromadb
import numpy as np
from chromadb.api.shared_system_client import SharedSystemClient
from chromadb.config import Settings
from condition import Condition

from .database import K, Database


class Chroma(Database):
    """HNSW (hnswlib) beside SQLite."""

    packages = ("chromadb",)
    settings = "max_neighbors=16, ef_construction=200"
    acknowledged = "committed to SQLite, synced; the index is written every 1,000 rows"
    sweep = (10, 20, 40, 80, 160, 320)

    def create(self, rows: int) -> None:
        space = "l2" if self.metric == "euclidean" else "cosine"
        graph = {"space": space, "max_neighbors": 16, "ef_construction": 200}
        self._connect()
        self.rows = self.client.create_collection("rows", configuration={"hnsw": graph})

    def open(self) -> None:
        self._connect()
        self.rows = self.client.get_collection("rows")

    def insert(self, first: int, vectors: np.ndarray) -> None:
        columns = {name: column.tolist() for name, column in self.columns(first, len(vectors)).items()}
        kept = [{name: column[n] for name, column in columns.items()} for n in range(len(vectors))]
        ids = self._ids(first, len(vectors))
        self.rows.add(ids=ids, embeddings=vectors, metadatas=kept if columns else None)

    def replace(self, first: int, vectors: np.ndarray) -> None:
        self.rows.upsert(ids=self._ids(first, len(vectors)), embeddings=vectors)

    def effort(self, breadth: int) -> None:
        # An open index passes over a new ef, so it is opened again.
        self.rows.modify(configuration={"hnsw": {"ef_search": breadth}})
        self.close()
        self.open()
        self.search(np.zeros(self.dim, np.float32) + 1)

    def search(self, query: np.ndarray) -> Any:
        found = self.rows.query(query_embeddings=[query], n_results=K, include=[])
        return [int(one) for one in found["ids"][0]]

    def search_where(self, query: np.ndarray, condition: Condition) -> Any:
        compare = {"=": "$eq", "<": "$lt", ">=": "$gte"}[condition.comparison]
        only = {condition.field: {compare: condition.value}}
        found = self.rows.query(query_embeddings=[query], n_results=K, where=only, include=[])
        return [int(one) for one in found["ids"][0]]

    def search_many(self, queries: np.ndarray) -> Any:
        found = self.rows.query(query_embeddings=queries, n_results=K, include=[])
        return [[int(one) for one in ids] for ids in found["ids"]]

    def delete(self, first: int, count: int) -> None:
        for start in range(first, first + count, self.batch):
            self.rows.delete(ids=self._ids(start, min(self.batch, first + count - start)))

    def close(self) -> None:
        SharedSystemClient.clear_system_cache()
        del self.client, self.rows

    def _connect(self) -> None:
        quiet = Settings(anonymized_telemetry=False)
        self.client = chromadb.PersistentClient(str(self.folder), settings=quiet)

    def _ids(self, first: int, count: int) -> list[str]:
        return [str(one) for one in range(first, first + count)]
