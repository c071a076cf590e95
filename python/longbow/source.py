"""What a caller may insert, and how each kind is read: as a stream of frames.

A frame is a set of named columns of equal length, still in their own types
(Arrow arrays, numpy arrays, Python lists); :mod:`longbow.rows` shapes them.
pandas, polars, Dask and numpy are recognised by what they can do and are never
imported here.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from .errors import InvalidArgument
from .vectors import is_numpy, is_vector

# Dictionaries from a generator are gathered into frames of this many rows.
_GATHERED_ROWS = 8192
# A table whose chunks are smaller than this on average is compacted first:
# each chunk becomes a message, and a message costs as much as a hundred rows.
_TINY_CHUNK_ROWS = 1024


@dataclass
class Frame:
    """Columns of one length, in the order of the data; ``made`` says that they
    came from a bare matrix, which has neither names nor ids. ``said`` is what the
    metadata of fields says to Longbow."""

    columns: dict[str, Any]
    rows: int
    metadata: dict[bytes, bytes] = field(default_factory=dict)
    made: bool = False
    said: dict[str, dict[bytes, bytes]] = field(default_factory=dict)


def total_rows(data: Any) -> int | None:
    """The number of rows, where the data says so without being read."""
    for attribute in ("num_rows", "height"):
        count = getattr(data, attribute, None)
        if isinstance(count, int):
            return count
    if _is_pandas(data) or is_numpy(data):
        return len(data)
    if (
        isinstance(data, list)
        and data
        and isinstance(data[0], Mapping)
        and not _are_columns(data[0])
    ):
        return len(data)
    if isinstance(data, Mapping) and data:
        first = next(iter(data.values()))
        return len(first) if hasattr(first, "__len__") else None
    return None


def frames(data: Any, vector_name: str) -> Iterator[Frame]:
    """Reads ``data`` as frames; a bare matrix becomes column ``vector_name``.

    Streams are read lazily: one frame is held at a time.
    """
    if isinstance(data, pa.Table):
        yield from _table(data)
    elif isinstance(data, pa.RecordBatch):
        yield _batch(data)
    elif is_numpy(data):
        yield _matrix(data, vector_name)
    elif _is_dask(data):
        for part in data.to_delayed():
            yield from frames(part.compute(), vector_name)
    elif _is_pandas(data):
        yield _pandas(data)
    elif hasattr(data, "collect") and hasattr(data, "lazy"):  # polars' LazyFrame
        yield from frames(data.collect(), vector_name)
    elif hasattr(data, "to_arrow") and hasattr(data, "columns"):  # polars, DuckDB
        yield from frames(data.to_arrow(), vector_name)
    elif hasattr(data, "__arrow_c_stream__"):
        for batch in pa.RecordBatchReader.from_stream(data):
            yield _batch(batch)
    elif hasattr(data, "__arrow_c_array__"):
        yield _batch(pa.record_batch(data))
    elif isinstance(data, Mapping):
        yield _columns(dict(data))
    elif isinstance(data, Iterable) and not isinstance(data, (str, bytes)):
        yield from _stream(iter(data), vector_name)
    else:
        raise InvalidArgument(
            "invalid_data",
            f"can't insert a {type(data).__name__}: give a pandas, polars or Dask frame, a 2-D "
            "numpy array, an Arrow table, batch or reader, a list of dicts, or an iterator of them",
        )


def _is_pandas(data: Any) -> bool:
    return hasattr(data, "iloc") and hasattr(data, "columns")


def _is_dask(data: Any) -> bool:
    return hasattr(data, "to_delayed") and hasattr(data, "npartitions")


def _table(table: pa.Table) -> Iterator[Frame]:
    chunks = max((column.num_chunks for column in table.columns), default=0)
    if chunks > 1 and table.num_rows < chunks * _TINY_CHUNK_ROWS:
        table = table.combine_chunks()
    batches = table.to_batches()
    # An empty table has no batch, and still a schema to create a dataset from.
    for batch in batches or [pa.RecordBatch.from_pylist([], schema=table.schema)]:
        yield _batch(batch)


def _batch(batch: pa.RecordBatch) -> Frame:
    columns = dict(zip(_distinct(batch.schema.names), batch.columns))
    # What pandas left there describes an index that is not sent.
    metadata = {k: v for k, v in (batch.schema.metadata or {}).items() if k != b"pandas"}
    said = {column.name: _said(column.metadata) for column in batch.schema}
    return Frame(columns, batch.num_rows, metadata, said=said)


def _distinct(names: Iterable[Any]) -> list[str]:
    """The names of columns as text; no two may be the same, or one of them would be lost."""
    texts = [str(name) for name in names]
    for name in texts:
        count = texts.count(name)
        if count > 1:
            text = f"column {name!r} comes {count} times; rename or drop it"
            raise InvalidArgument("duplicate_column", text)
    return texts


def _said(metadata: dict[bytes, bytes] | None) -> dict[bytes, bytes]:
    return {k: v for k, v in (metadata or {}).items() if k.startswith(b"longbow.")}


def _matrix(array: Any, vector_name: str) -> Frame:
    if array.ndim != 2:
        raise InvalidArgument(
            "invalid_data",
            f"a numpy array must be 2-D, rows by dimension; this one has shape {array.shape}",
        )
    return Frame({vector_name: array}, len(array), made=True)


def _pandas(frame: Any) -> Frame:
    columns: dict[str, Any] = {}
    for position, name in enumerate(_distinct(frame.columns)):
        series = frame.iloc[:, position]
        values = series.to_numpy() if str(series.dtype) == "object" else None
        first = next((v for v in values if v is not None), None) if values is not None else None
        if is_vector(first):
            columns[name] = values
        else:
            columns[name] = typed(name, series, from_pandas=True)
    return Frame(columns, len(frame))


def _columns(columns: dict[Any, Any]) -> Frame:
    out: dict[str, Any] = {}
    for name, column in zip(_distinct(columns), columns.values()):
        arrow = isinstance(column, (pa.Array, pa.ChunkedArray))
        if not (arrow or is_numpy(column) or hasattr(column, "__arrow_array__")):
            if hasattr(column, "to_arrow"):  # a polars Series
                column, arrow = column.to_arrow(), True
            else:
                column = _listed(name, column)
        first = None if arrow else next((v for v in column if v is not None), None)
        keep = arrow or is_vector(first) or (is_numpy(column) and column.ndim == 2)
        out[name] = column if keep else typed(name, column)
    lengths = {name: len(column) for name, column in out.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidArgument("invalid_data", f"columns differ in length: {lengths}")
    return Frame(out, next(iter(lengths.values()), 0))


def _listed(name: str, column: Any) -> list[Any]:
    if isinstance(column, Iterable) and not isinstance(column, (str, bytes, Mapping)):
        return list(column)
    raise InvalidArgument(
        "invalid_data",
        f"column {name!r} is of type {type(column).__name__}: give each column a list or an "
        "array of its values, or rows as a list of dicts",
    )


def typed(name: str, values: Any, from_pandas: bool = False) -> Any:
    try:
        return pa.array(values, from_pandas=from_pandas)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidArgument("invalid_data", f"column {name!r}: {error}") from error


def _rows(rows: list[Mapping[str, Any]]) -> Frame:
    # The union of the keys, in the order of first sight: a missing one is null.
    names = dict.fromkeys(itertools.chain.from_iterable(rows))
    return _columns({name: [row.get(name) for row in rows] for name in names})


def _stream(items: Iterator[Any], vector_name: str) -> Iterator[Frame]:
    first = next(items, None)
    if first is None:
        return
    items = itertools.chain([first], items)
    if isinstance(first, Mapping) and not _are_columns(first):
        for rows in iter(lambda: list(itertools.islice(items, _GATHERED_ROWS)), []):
            yield _rows(rows)
    elif _is_item(first):
        for item in items:
            if not _is_nothing(item):
                yield from frames(item, vector_name)
    else:
        raise InvalidArgument(
            "invalid_data",
            f"an iterator must give dicts, batches or frames, not {type(first).__name__}",
        )


def _is_nothing(item: Any) -> bool:
    """Whether an item is a dict of empty columns, which have no types to tell."""
    empty = isinstance(item, Mapping)
    return empty and all(hasattr(one, "__len__") and len(one) == 0 for one in item.values())


def _is_item(item: Any) -> bool:
    known = isinstance(item, (pa.Table, pa.RecordBatch, Mapping))
    known = known or is_numpy(item) or _is_pandas(item)
    rows = isinstance(item, list) and (not item or isinstance(item[0], Mapping))
    return known or rows or hasattr(item, "to_arrow") or hasattr(item, "__arrow_c_array__")


def _are_columns(item: Mapping[Any, Any]) -> bool:
    """Whether a dict holds columns rather than one row: no value is a plain one, and the ids
    are several, or the vectors."""

    def is_column(value: Any) -> bool:
        if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__len__"):
            return False
        return not is_numpy(value) or value.ndim > 0

    def holds_vectors(value: Any) -> bool:
        if is_numpy(value) or isinstance(value, (pa.Array, pa.ChunkedArray)):
            nested = pa.types.is_nested(value.type) if hasattr(value, "type") else value.ndim == 2
            return nested or bool(len(value)) and is_vector(value[0])
        return is_vector(next((one for one in value if one is not None), None))

    if not all(map(is_column, item.values())):
        return False
    return "id" in item or any(
        map(holds_vectors, [item[n] for n in item if n == "vector"] or item.values())
    )
