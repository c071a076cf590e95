"""The benchmark's data: an int64 id and a float32 vector, in batches of 10,000 rows."""

from __future__ import annotations

import numpy as np
import paths  # noqa: F401  (makes `perf` importable)
import pyarrow as pa
from perf.data import vector_array

BATCH_ROWS = 10_000
DIM = 128


def schema(dim: int = DIM) -> pa.Schema:
    """The schema on the wire."""
    return pa.schema([("id", pa.int64()), ("vector", pa.list_(pa.float32(), dim))])


def batch(vectors: np.ndarray, first: int) -> pa.RecordBatch:
    """A batch with the ids `first ..`."""
    ids = pa.array(np.arange(first, first + len(vectors)), pa.int64())
    return pa.record_batch([ids, vector_array(vectors)], schema=schema(vectors.shape[1]))


def batches(
    vectors: np.ndarray, rows: int | None = None, batch_rows: int = BATCH_ROWS
) -> list[pa.RecordBatch]:
    """`rows` rows (default: one a vector); vectors are used again from the start where rows are more."""
    total = len(vectors) if rows is None else rows
    out = []
    for first in range(0, total, batch_rows):
        count = min(batch_rows, total - first)
        start = first % len(vectors)
        if start + count > len(vectors):
            raise ValueError(f"{len(vectors)} vectors do not divide into batches of {batch_rows}")
        out.append(batch(vectors[start : start + count], first))
    return out


def gaussian(rows: int, seed: int, dim: int = DIM) -> np.ndarray:
    """Vectors without structure: enough where only bytes are moved, never used where recall is measured."""
    return np.random.default_rng(seed).standard_normal((rows, dim), dtype=np.float32)
