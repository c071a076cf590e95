"""Rows whose whole content follows from their key and version, so that any wrong value is seen.

A version is a number that is given once. Its lowest bit says whether the row was put with the column `late`, which
the datasets do not have from the beginning.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

GROUPS = 7
# Keys of one writer: `owner * KEYS` up to `(owner + 1) * KEYS`.
KEYS = 1200
_U = np.uint64


@dataclass(frozen=True)
class Kind:
    """What the rows of a dataset look like."""

    name: str
    text_ids: bool
    element: str
    dim: int
    metric: str

    def id(self, key: int) -> int | str:
        """The id of a key."""
        return f"key-{key}" if self.text_ids else key * 3 - 1000

    def key(self, name: int | str) -> int:
        """The key of an id."""
        return int(name[4:]) if self.text_ids else (name + 1000) // 3

    def schema(self, late: bool) -> pa.Schema:
        """The schema of a put."""
        vector = pa.list_(pa.from_numpy_dtype(self.element), self.dim)
        fields = [
            pa.field("id", pa.string() if self.text_ids else pa.int64()),
            pa.field("vector", vector),
            pa.field("version", pa.int64()),
            pa.field("owner", pa.int32()),
            pa.field("group", pa.int16()),
            pa.field("label", pa.string()),
            pa.field("text", pa.string()),
        ]
        if late:
            fields.append(pa.field("late", pa.int64()))
        return pa.schema(fields, metadata={"longbow.metric": self.metric})

    def vectors(self, versions: np.ndarray) -> np.ndarray:
        """The vectors of versions: small whole numbers, which every element type holds exactly."""
        parts = [_mix(versions.astype(_U) * _U(4) + _U(part)) for part in range((self.dim + 7) // 8)]
        numbers = [(part >> _U(8 * at)) & _U(15) for part in parts for at in range(8)]
        return (np.stack(numbers[: self.dim], axis=1).astype(np.int64) - 8).astype(self.element)

    def columns(self, keys: np.ndarray, versions: np.ndarray, late: bool) -> pa.Table:
        """What rows of these keys and versions must hold; with `late`, as rows of a dataset that has the column."""
        vectors = pa.array(self.vectors(versions).reshape(-1))
        with_late = versions & 1 == 1
        arrays = [
            pa.array([self.id(key) for key in keys.tolist()], self.schema(False).field("id").type),
            pa.FixedSizeListArray.from_arrays(vectors, self.dim),
            pa.array(versions, pa.int64()),
            pa.array(keys // KEYS, pa.int32()),
            pa.array(versions // 2 % GROUPS, pa.int16()),
            pa.array([f"{k}/{v}" if v % 3 else None for k, v in zip(keys.tolist(), versions.tolist())]),
            pa.array([text(key, version) for key, version in zip(keys.tolist(), versions.tolist())], pa.string()),
        ]
        if late:
            arrays.append(pa.array(versions * 5, pa.int64(), mask=~with_late))
        return pa.table(arrays, schema=self.schema(late))

    def batch(self, rows: list[tuple[int, int]], late: bool) -> pa.RecordBatch:
        """Rows to put: pairs of key and version."""
        keys = np.array([row[0] for row in rows], np.int64)
        versions = np.array([row[1] for row in rows], np.int64)
        return self.columns(keys, versions, late).combine_chunks().to_batches()[0]


KINDS = [
    Kind("ints", False, "float32", 16, "euclidean"),
    Kind("space/texts", True, "float16", 8, "cosine"),
]


def own_word(key: int, version: int) -> str:
    """A word that only one version of one row has."""
    return f"own{version}of{key}"


def text(key: int, version: int) -> str:
    """The text of a row: a word of its own, one of its key, and some that many rows have."""
    return f"{own_word(key, version)} key{key} in group{group(version)} and word{version % 11}"


def group(version: int) -> int:
    """The value of a row's column `group`."""
    return version // 2 % GROUPS


def _mix(numbers: np.ndarray) -> np.ndarray:
    """Spreads the bits: the end of SplitMix64 (Steele, Lea, Flood 2014)."""
    z = numbers * _U(0x9E3779B97F4A7C15)
    z = (z ^ (z >> _U(30))) * _U(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> _U(27))) * _U(0x94D049BB133111EB)
    return z ^ (z >> _U(31))
