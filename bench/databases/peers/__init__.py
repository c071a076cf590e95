"""What is compared, one file each; `ALL` is found by name without importing a library that is not there."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from .database import Database


@dataclass(frozen=True)
class Peer:
    """A system: the module and class of its adapter, and the environment that it runs in (None: Longbow's own)."""

    name: str
    place: str
    environment: str | None

    def load(self) -> type[Database]:
        """Its adapter; an environment without its library says so."""
        module, kind = self.place.split(":")
        found: type[Database] = getattr(importlib.import_module(f"peers.{module}"), kind)
        return found


ALL = (
    Peer("longbow", "longbow_engine:Longbow", None),
    Peer("longbow-wire", "longbow_wire:Exchange", None),
    Peer("longbow-ticket", "longbow_wire:Tickets", None),
    Peer("hnswlib", "hnswlib_index:Hnswlib", "hnswlib"),
    Peer("qdrant", "qdrant:Qdrant", "qdrant"),
    Peer("zvec", "zvec_hnsw:Zvec", "zvec"),
    Peer("zvec-rabitq", "zvec_hnsw:ZvecRabitq", "zvec"),
    Peer("lancedb", "lancedb_hnsw:LanceDb", "lancedb"),
    Peer("chroma", "chroma:Chroma", "chroma"),
    Peer("pgvector", "pgvector:PgVector", "pgvector"),
    Peer("pgvector-iterative", "pgvector:PgVectorIterative", "pgvector"),
    Peer("faiss", "faiss_hnsw:Faiss", "faiss"),
    Peer("duckdb", "duckdb_scan:DuckDb", "duckdb"),
)
OURS = tuple(peer.name for peer in ALL if peer.environment is None)
# These differ from others, or can be had, with a filter only.
_FILTERED_ONLY = ("pgvector-iterative", "faiss", "duckdb")
SEARCHED = tuple(peer.name for peer in ALL if peer.name not in _FILTERED_ONLY)
# A message of Longbow's stream has no place for a filter, and zvec's codes are filtered as its vectors are.
FILTERED = tuple(peer.name for peer in ALL if peer.name not in ("longbow-wire", "zvec-rabitq"))
# What a user would pick instead: the best of these is what Longbow is compared with. hnswlib is the yardstick.
DATABASES = tuple(peer.name for peer in ALL if peer.environment not in (None, "hnswlib", "faiss"))


def by_name(name: str) -> Peer:
    """The peer of this name."""
    return next(peer for peer in ALL if peer.name == name)
