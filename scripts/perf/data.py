"""The data of the load test: a mixture of Gaussians, with held-out points of the same mixture as queries.

Uniform random vectors have no neighbourhoods and make every index look bad; queries that are rows of the
data make every index look good. A mixture with held-out queries is the plain middle: clusters as
embeddings have them, and a question that is not itself in the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

# Rows are drawn in blocks, each from its own seed, so that any range can be made again on its own.
BLOCK = 10_000
SPREAD = 0.7
CATEGORIES = 10
# 2024-01-01 in microseconds; a row's timestamp is that plus its id in milliseconds.
EPOCH_US = 1_704_067_200_000_000
TARGET_BATCH_BYTES = 8 << 20

_COMPLEX = {"complex64": np.float32, "complex128": np.float64}
DTYPES = (
    *("float16", "float32", "float64"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *_COMPLEX,
)
WORDS = (
    "amber anchor arrow basin birch bridge canyon cedar clay coast copper coral crane delta dune ember "
    "falcon fern field flint forest garnet glacier grove harbor hazel heron hollow island ivory jasper "
    "juniper kelp lagoon lantern larch ledge lichen linden maple marble marsh meadow mesa moss oak "
    "ochre orchard osprey pebble pine plain prairie quarry quartz rapids raven reef ridge river saffron "
    "sage sand slate sparrow spruce summit thicket tide timber tundra valley violet walnut willow wren"
).split()


@dataclass(frozen=True)
class Spec:
    """What to draw: `rows` vectors of `dim` elements of `dtype` (for complex types 2 x dim floats on the wire)."""

    rows: int
    dim: int
    dtype: str = "float32"
    metric: str = "euclidean"
    text_field: str | None = None
    seed: int = 42

    @property
    def element(self) -> np.dtype:
        """The type of one stored number."""
        return np.dtype(_COMPLEX.get(self.dtype, self.dtype))

    @property
    def width(self) -> int:
        """Stored numbers a vector."""
        return self.dim * (2 if self.dtype in _COMPLEX else 1)

    @property
    def clusters(self) -> int:
        """About a hundred rows a cluster, between 10 and 1,000 clusters."""
        return min(1000, max(10, self.rows // 100))

    @property
    def batch_rows(self) -> int:
        """Rows a batch: about 8 MB, at most 10,000."""
        return max(1, min(BLOCK, TARGET_BATCH_BYTES // (self.width * self.element.itemsize)))


class Mixture:
    """Draws rows and queries of one mixture; the same spec gives the same numbers."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        rng = np.random.default_rng([spec.seed, 0])
        self.centers = rng.standard_normal((spec.clusters, spec.width), dtype=np.float32)

    def raw(self, stream: tuple[int, ...], count: int) -> tuple[np.ndarray, np.ndarray]:
        """Clusters and float32 points; each stream of numbers (1 the rows, 2 the queries) is independent."""
        rng = np.random.default_rng([self.spec.seed, *stream])
        cluster = rng.integers(0, len(self.centers), count)
        noise = rng.standard_normal((count, self.spec.width), dtype=np.float32)
        return cluster, self.centers[cluster] + SPREAD * noise

    def _draw(self, stream: tuple[int, ...], count: int) -> tuple[np.ndarray, np.ndarray]:
        cluster, points = self.raw(stream, count)
        return cluster, quantise(points, self.spec.element)

    def block(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Clusters and vectors of the rows `number * BLOCK ..`; one past the end is as good."""
        return self._draw((1, number), BLOCK)

    def vectors(self, rows: int) -> np.ndarray:
        """The first `rows` vectors."""
        out = np.empty((rows, self.spec.width), dtype=self.spec.element)
        for start in range(0, rows, BLOCK):
            stop = min(rows, start + BLOCK)
            out[start:stop] = self.block(start // BLOCK)[1][: stop - start]
        return out

    def queries(self, count: int) -> tuple[np.ndarray, list[str]]:
        """Held-out vectors and a query text for each (the word of its cluster)."""
        cluster, vectors = self._draw((2,), count)
        return vectors, [topic(int(c)) for c in cluster]

    def schema(self) -> pa.Schema:
        """The schema on the wire, with its metadata."""
        spec = self.spec
        metadata = {"longbow.metric": spec.metric, "longbow.vector_type": spec.dtype}
        if spec.dtype in _COMPLEX:
            metadata["longbow.complex"] = "true"
        fields = [
            pa.field("id", pa.int64()),
            pa.field("vector", pa.list_(pa.from_numpy_dtype(spec.element), spec.width)),
            pa.field("timestamp", pa.timestamp("us")),
            pa.field("category", pa.int32()),
        ]
        if spec.text_field:
            fields.append(pa.field(spec.text_field, pa.string()))
        return pa.schema(fields, metadata=metadata)

    def batch(self, start: int, stop: int) -> pa.RecordBatch:
        """The rows `start..stop`, which must lie in one block."""
        cluster, vectors = self.block(start // BLOCK)
        low = start - start // BLOCK * BLOCK
        span = slice(low, low + stop - start)
        return self.make_batch(np.arange(start, stop), cluster[span], vectors[span])

    def make_batch(self, ids: np.ndarray, cluster: np.ndarray, vectors: np.ndarray) -> pa.RecordBatch:
        """A batch of the schema from ids (int64), clusters and vectors."""
        columns: list[pa.Array] = [
            pa.array(ids, pa.int64()),
            vector_array(vectors),
            pa.array(EPOCH_US + ids * 1000, pa.timestamp("us")),
            pa.array((ids % CATEGORIES).astype(np.int32)),
        ]
        if self.spec.text_field:
            columns.append(pa.array([row_text(int(i), int(c)) for i, c in zip(ids, cluster, strict=True)]))
        return pa.record_batch(columns, schema=self.schema())

    def batches(self, first: int = 0) -> Iterator[pa.RecordBatch]:
        """All rows from `first` on, in batches of about 8 MB."""
        start = first
        while start < self.spec.rows:
            block_end = (start // BLOCK + 1) * BLOCK
            stop = min(self.spec.rows, block_end, start + self.spec.batch_rows)
            yield self.batch(start, stop)
            start = stop


def quantise(values: np.ndarray, element: np.dtype) -> np.ndarray:
    """Floats to the stored type: integers get a scale (and unsigned ones an offset) that hardly ever clips."""
    if element.kind == "f":
        return values.astype(element)
    limits = np.iinfo(element)
    scale = 20.0 if element.itemsize == 1 else 1000.0
    offset = 0.0 if element.kind == "i" else (128.0 if element.itemsize == 1 else 10_000.0)
    return np.clip(np.rint(values * scale + offset), limits.min, min(limits.max, 1 << 24)).astype(element)


def vector_array(vectors: np.ndarray) -> pa.FixedSizeListArray:
    """A matrix as an Arrow column, without copying the numbers."""
    flat = pa.array(np.ascontiguousarray(vectors).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])


def vectors_of(column: pa.ChunkedArray) -> np.ndarray:
    """An Arrow vector column as a matrix."""
    combined = column.combine_chunks()
    flat = combined.flatten().to_numpy(zero_copy_only=False)
    return flat.reshape(len(combined), -1)


def topic(cluster: int) -> str:
    """The word that the texts of a cluster share."""
    return WORDS[cluster % len(WORDS)]


def row_text(row: int, cluster: int) -> str:
    """A row's text: its cluster's word among four that depend on the row."""
    others = " ".join(WORDS[(row * step + step) % len(WORDS)] for step in (7, 11, 13, 17))
    return f"{topic(cluster)} {others}"
