"""Longbow in this process."""

from __future__ import annotations

from typing import Any

import longbow
import numpy as np
from condition import Condition

from .database import K, Database

#: As far as the index is concerned, the same as for a search of the peers.
SETTINGS = "by default: a graph of RaBitQ codes, distances exact; its log is synced right behind the acknowledgements"
ACKNOWLEDGED = "in its log, synced within a second or 256 MB; durable at once if asked for"


def rows(database: Database, first: int, vectors: np.ndarray) -> dict[str, np.ndarray]:
    """An insert: ids, vectors and attributes as columns."""
    ids = np.arange(first, first + len(vectors))
    return {"id": ids, "vector": vectors, **database.columns(first, len(vectors))}


class Longbow(Database):
    """The engine on a folder, by `longbow.open`."""

    settings = SETTINGS
    acknowledged = ACKNOWLEDGED

    def create(self, rows: int) -> None:
        self.open()

    def open(self) -> None:
        self.database = longbow.open(self.folder)

    def insert(self, first: int, vectors: np.ndarray) -> None:
        self.database.insert("rows", rows(self, first, vectors), metric=self.metric)

    replace = insert

    def index(self) -> None:
        self.database.wait_until_indexed("rows", timeout=3_600)

    def effort(self, breadth: int) -> None:
        self.breadth = breadth

    def search(self, query: np.ndarray) -> Any:
        return self.database.search_numpy("rows", query, K, ef=self.breadth)[0]

    def search_where(self, query: np.ndarray, condition: Condition) -> Any:
        asked = (condition.field, condition.comparison, condition.value)
        return self.database.search_numpy("rows", query, K, ef=self.breadth, filters=asked)[0]

    def search_many(self, queries: np.ndarray) -> Any:
        return self.database.search_numpy("rows", queries, K, ef=self.breadth)[0]

    def delete(self, first: int, count: int) -> None:
        self.database.delete("rows", range(first, first + count))

    def close(self) -> None:
        self.database.close()
