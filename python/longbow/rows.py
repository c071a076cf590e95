"""Rows: frames shaped into record batches of one schema, as the server takes them.

Shaping names the id column ``id``, turns vector columns into FixedSizeLists,
adds the schema metadata, and cuts batches to a size in bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from . import vectors
from .cells import typed
from .errors import InvalidArgument
from .ids import checked, given
from .nulls import Nulls
from .source import Frame

#: Batches are cut to about this many bytes: large enough that a message's own
#: cost disappears, small enough that several are in flight at once.
BATCH_BYTES = 8 << 20
#: Vectors that have to be copied are copied this many rows at a time, so that
#: the data is never in memory twice.
CHUNK_ROWS = 16384


@dataclass
class Columns:
    """What the caller said about the columns; see ``LongbowClient.insert``."""

    id: str | None = None
    vector: None | str | Sequence[str] = None
    ids: Any = None
    metric: str | None = None
    dtype: str | None = None
    index: str | None = None
    quantization: str | None = None
    recall_target: float | None = None
    text: Mapping[str, str] | None = None

    def vector_name(self) -> str:
        """The name that a bare matrix gets."""
        if self.vector is None:
            return "vector"
        return self.vector if isinstance(self.vector, str) else self.vector[0]


class Shaper:
    """Shapes the frames of one insert; counts rows, so that errors name them."""

    def __init__(
        self,
        columns: Columns,
        total: int | None,
        chunk: int = CHUNK_ROWS,
        known: Callable[[], pa.Schema | None] = lambda: None,
        nulls: Nulls | None = None,
    ) -> None:
        """``known`` tells the schema of the dataset, whose types Python's lists of numbers get;
        ``nulls`` what becomes of columns without a value."""
        self._columns = columns
        self._chunk = chunk
        self._known = known
        self._nulls = nulls or Nulls(lambda: None)
        self._usual: dict[str, pa.DataType | None] = {}
        self._ids = None if columns.ids is None else given(columns.ids)
        self._row = 0
        self._schema: pa.Schema | None = None
        self._vectors: list[str] | None = None
        if self._ids is not None and total is not None and len(self._ids) != total:
            raise InvalidArgument("invalid_ids", f"{len(self._ids)} ids for {total} rows")

    def batches(self, frames: Iterable[Frame]) -> Iterator[pa.RecordBatch]:
        """Record batches of one schema, in the order of the frames' rows."""
        for frame in frames:
            columns = self._with_id(frame)
            if self._vectors is None:
                self._vectors = _vector_names(frame, self._columns.vector)
            self._check_text(columns)
            step = self._chunk if self._copies(columns) else max(frame.rows, 1)
            for start in range(0, max(frame.rows, 1), step):
                end = min(start + step, frame.rows)
                yield self._shape(columns, start, end, frame)
                self._row += end - start
        if self._ids is not None and self._row != len(self._ids):
            raise InvalidArgument("invalid_ids", f"{len(self._ids)} ids for {self._row} rows")

    def _check_text(self, columns: dict[str, Any]) -> None:
        for name in self._columns.text or ():
            if name not in columns:
                known = ", ".join(map(repr, columns))
                raise InvalidArgument(
                    "unknown_column", f"text= names {name!r}, which is not among {known}"
                )

    def _copies(self, columns: dict[str, Any]) -> bool:
        """Whether some vectors need a copy, rather than a view of their buffer."""
        chosen = [columns[name] for name in self._vectors or () if name in columns]
        return self._columns.dtype is not None or any(_is_object(column) for column in chosen)

    def _with_id(self, frame: Frame) -> dict[str, Any]:
        columns, name = dict(frame.columns), self._columns.id or "id"
        end = self._row + frame.rows
        if self._ids is not None:
            if name in columns:
                raise InvalidArgument(
                    "invalid_ids", f"ids= was given, and the data has a column {name!r} too"
                )
            if end > len(self._ids):
                raise InvalidArgument("invalid_ids", f"{len(self._ids)} ids for {end} rows or more")
            return {"id": self._ids[self._row : end], **columns}
        if frame.made:
            return {"id": pa.array(range(self._row, end), pa.int64()), **columns}
        if name not in columns:
            raise InvalidArgument(
                "missing_id",
                f"no column {name!r} among {', '.join(map(repr, columns))}: "
                "name it with id=, or give ids=",
            )
        if name != "id" and "id" in columns:
            raise InvalidArgument(
                "invalid_ids", f"column {name!r} would be sent as 'id', which exists already"
            )
        return {("id" if key == name else key): value for key, value in columns.items()}

    def _shape(self, columns: dict[str, Any], start: int, end: int, frame: Frame) -> pa.RecordBatch:
        metadata: dict[Any, Any] = dict(frame.metadata)
        arrays: dict[str, pa.Array] = {}
        for name, column in columns.items():
            part = column[start:end]
            if name == "id":
                arrays[name] = checked(part, self._row)
            elif name in (self._vectors or ()):
                usual = self._element(name) if _is_object(column) else None
                arrays[name], extra = vectors.fixed(
                    part, name, self._row, dtype=self._columns.dtype, usual=usual
                )
                metadata.update(extra)
            else:
                # Cells that might have been vectors, and are not meant as such.
                is_cells = isinstance(part, list) or vectors.is_numpy(part)
                array = typed(name, part, self._row) if is_cells else part
                arrays[name] = vectors.plain_text(array)
        sent = () if self._schema is None else self._schema.names
        arrays = self._nulls.typed(arrays, sent)
        if self._columns.metric is not None:
            metadata["longbow.metric"] = self._columns.metric
        fields = [self._field(name, array.type, frame) for name, array in arrays.items()]
        schema = pa.schema(fields, metadata)
        batch = pa.RecordBatch.from_arrays(list(arrays.values()), schema=schema)
        return self._conform(batch)

    def _element(self, name: str) -> pa.DataType | None:
        """What vectors of the dataset's column are made of."""
        if name not in self._usual:
            schema = self._known() if self._columns.dtype is None else None
            kind = (
                pa.null() if schema is None or name not in schema.names else schema.field(name).type
            )
            is_vectors = pa.types.is_fixed_size_list(kind)
            self._usual[name] = kind.value_type if is_vectors else None
        return self._usual[name]

    def _field(self, name: str, kind: pa.DataType, frame: Frame) -> pa.Field:
        metadata: dict[Any, Any] = dict(frame.said.get(name, {}))
        said: dict[str, Any] = {"longbow.text": (self._columns.text or {}).get(name)}
        if name in (self._vectors or ()):
            said["longbow.index"] = self._columns.index
            said["longbow.quantization"] = self._columns.quantization
            said["longbow.recall_target"] = self._columns.recall_target
        metadata.update({key: str(value) for key, value in said.items() if value is not None})
        return pa.field(name, kind, metadata=metadata or None)

    def _conform(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """One stream has one schema: the first batch's. Later ones are cast."""
        if self._schema is None:
            self._schema = batch.schema
        if batch.schema.equals(self._schema):
            return batch
        if set(batch.schema.names) != set(self._schema.names):
            late = [name for name in batch.schema.names if name in self._nulls.left_out]
            why = f"; those had no value of {late[0]!r} to tell its type" if late else ""
            raise InvalidArgument(
                "schema_mismatch",
                f"the rows from {self._row} on have columns {batch.schema.names}, the rows "
                f"before {self._schema.names}{why}; give all rows the same columns and types",
            )
        arrays = [_conform_column(batch, field, self._row) for field in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def cut(batches: Iterable[pa.RecordBatch], rows: int | None) -> Iterator[pa.RecordBatch]:
    """Cuts batches to ``rows`` each, or to about :data:`BATCH_BYTES`; no copies.

    >>> batch = pa.record_batch({"id": range(5)})
    >>> [part.num_rows for part in cut([batch], 2)]
    [2, 2, 1]
    """
    for batch in batches:
        step = rows or max(1, batch.num_rows * BATCH_BYTES // max(batch.nbytes, 1))
        if batch.num_rows <= step:
            yield batch
            continue
        for start in range(0, batch.num_rows, step):
            yield batch.slice(start, step)


def _vector_names(frame: Frame, wanted: None | str | Sequence[str]) -> list[str]:
    columns = frame.columns
    if wanted is not None:
        names = [wanted] if isinstance(wanted, str) else list(wanted)
        for name in names:
            if name not in columns:
                found = ", ".join(map(repr, columns))
                raise InvalidArgument("missing_vector", f"no column {name!r} among {found}")
        return names
    sure = [name for name, column in columns.items() if _is_sure(column)]
    if "vector" in columns:
        return list(dict.fromkeys(["vector", *sure]))
    maybe = [name for name, column in columns.items() if name not in sure and _is_maybe(column)]
    if sure or len(maybe) == 1:
        return sure or maybe
    if maybe:
        raise InvalidArgument(
            "missing_vector", f"which of {', '.join(map(repr, maybe))} are vectors? Say vector="
        )
    raise InvalidArgument(
        "missing_vector",
        f"no vectors among {', '.join(map(repr, columns))}: name them by vector=",
    )


def _is_object(column: Any) -> bool:
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        return False
    return not (vectors.is_numpy(column) and column.ndim == 2)


def _is_sure(column: Any) -> bool:
    kind = getattr(column, "type", None)
    if isinstance(kind, pa.DataType):
        return pa.types.is_fixed_size_list(kind) and vectors.is_list_type(kind)
    return vectors.is_numpy(column) and bool(column.ndim == 2)


def _is_maybe(column: Any) -> bool:
    kind = getattr(column, "type", None)
    if isinstance(kind, pa.DataType):
        return vectors.is_list_type(kind)
    return vectors.is_vector(vectors.first_cell(column))


def _conform_column(batch: pa.RecordBatch, field: pa.Field, row: int) -> pa.Array:
    column = batch.column(field.name)
    if column.type == field.type:
        return column
    both_vectors = pa.types.is_fixed_size_list(column.type) and pa.types.is_fixed_size_list(
        field.type
    )
    if both_vectors and column.type.list_size != field.type.list_size:
        raise InvalidArgument(
            "dimension_mismatch",
            f"the rows from {row} on have {column.type.list_size} numbers in column "
            f"{field.name!r}, the rows before {field.type.list_size}",
        )
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidArgument(
            "schema_mismatch",
            f"the rows from {row} on have {column.type} in column {field.name!r}, the rows before "
            f"{field.type}",
        ) from error
