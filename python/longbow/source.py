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

from .cells import bare, foreign, typed
from .errors import InvalidArgument
from .vectors import first_cell, is_hollow, is_masked, is_numpy, is_vector, unmasked_matrix

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
    if _is_pandas(data) or _is_array(data) and data.ndim:
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


def frames(data: Any, vector_name: str, first: int = 0) -> Iterator[Frame]:
    """Reads ``data`` as frames; a bare matrix becomes column ``vector_name``.

    Streams are read lazily: one frame is held at a time. ``first`` is added to
    the row numbers that errors name.
    """
    if isinstance(data, pa.Table):
        yield from _table(data)
    elif isinstance(data, pa.RecordBatch):
        yield _batch(data)
    elif _is_array(data):
        yield _matrix(data, vector_name, first)
    elif _is_dask(data):
        for part in data.to_delayed():
            for frame in frames(part.compute(), vector_name, first):
                yield frame
                first += frame.rows
    elif _is_pandas(data):
        yield _pandas(data, first)
    elif hasattr(data, "collect") and hasattr(data, "lazy"):  # polars' LazyFrame
        yield from frames(data.collect(), vector_name)
    elif hasattr(data, "to_arrow") and hasattr(data, "columns"):  # polars, DuckDB
        yield from frames(foreign(data), vector_name)
    elif hasattr(data, "__arrow_c_stream__"):
        for batch in pa.RecordBatchReader.from_stream(data):
            yield _batch(batch)
    elif hasattr(data, "__arrow_c_array__"):
        yield _batch(pa.record_batch(data))
    elif isinstance(data, Mapping):
        yield _columns(dict(data), first)
    elif isinstance(data, Iterable) and not isinstance(data, (str, bytes)):
        yield from _stream(iter(data), vector_name, first)
    else:
        raise InvalidArgument(
            "invalid_data",
            f"can't insert a {type(data).__name__}: give a pandas, polars or Dask frame, a 2-D "
            "numpy array, an Arrow table, batch or reader, a list of dicts, or an iterator of them",
        )


def _is_array(data: Any) -> bool:
    return is_numpy(data) or is_masked(data)


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


def _matrix(array: Any, vector_name: str, first: int) -> Frame:
    if array.ndim != 2:
        raise InvalidArgument(
            "invalid_data",
            f"a numpy array must be 2-D, rows by dimension; this one has shape {array.shape}",
        )
    if is_masked(array):
        array = unmasked_matrix(array, vector_name, first)
    return Frame({vector_name: array}, len(array), made=True)


def _pandas(frame: Any, first_row: int) -> Frame:
    columns: dict[str, Any] = {}
    for position, name in enumerate(_distinct(frame.columns)):
        series = frame.iloc[:, position]
        values = bare(series.to_numpy()) if str(series.dtype) == "object" else None
        if values is not None and _may_be_vectors(values):
            # What pandas counts as missing, NaN too, is None among lists.
            missing = zip(values, series.isna()) if series.hasnans else None
            columns[name] = values if missing is None else [None if no else v for v, no in missing]
        else:
            # Where masks are gone, the values are no more those of the series.
            is_bare = isinstance(values, list)
            columns[name] = typed(name, values if is_bare else series, first_row, from_pandas=True)
    return Frame(columns, len(frame))


def _columns(columns: dict[Any, Any], first_row: int) -> Frame:
    out = {
        name: _column(name, column, first_row)
        for name, column in zip(_distinct(columns), columns.values())
    }
    lengths = {name: len(column) for name, column in out.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidArgument("invalid_data", f"columns differ in length: {lengths}")
    return Frame(out, next(iter(lengths.values()), 0))


def _column(name: str, column: Any, first_row: int) -> Any:
    """A column as it is, if it is Arrow's or may be one of vectors; else as Arrow's."""
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        return column
    is_array = _is_array(column)
    if is_array and column.ndim == 2:
        return unmasked_matrix(column, name, first_row) if is_masked(column) else column
    if not is_array and hasattr(column, "to_arrow"):  # a polars Series
        return foreign(column, name)
    if not (is_array and column.ndim or hasattr(column, "__arrow_array__")):
        column = _listed(name, column)
    if isinstance(column, list) or is_numpy(column) and column.dtype.kind == "O":
        column = bare(column)
    return column if _may_be_vectors(column) else typed(name, column, first_row)


def _may_be_vectors(cells: Any) -> bool:
    # Hollow ones may have been vectors before a mask hid them.
    first = first_cell(cells)
    return is_vector(first) or is_hollow(first)


def _listed(name: str, column: Any) -> list[Any]:
    is_one = isinstance(column, (str, bytes, Mapping)) or getattr(column, "ndim", 1) == 0
    if isinstance(column, Iterable) and not is_one:
        return list(column)
    raise InvalidArgument(
        "invalid_data",
        f"column {name!r} is of type {type(column).__name__}: give each column a list or an "
        "array of its values, or rows as a list of dicts",
    )


def _rows(rows: list[Mapping[str, Any]], first: int) -> Frame:
    # The union of the keys, in the order of first sight: a missing one is null.
    names = dict.fromkeys(itertools.chain.from_iterable(rows))
    return _columns({name: [row.get(name) for row in rows] for name in names}, first)


def _stream(items: Iterator[Any], vector_name: str, row: int) -> Iterator[Frame]:
    first = next(items, None)
    if first is None:
        return
    items = itertools.chain([first], items)
    if isinstance(first, Mapping) and not _are_columns(first):
        for rows in iter(lambda: list(itertools.islice(items, _GATHERED_ROWS)), []):
            yield _rows(rows, row)
            row += len(rows)
    elif _is_item(first):
        for item in items:
            if not _is_nothing(item):
                for frame in frames(item, vector_name, row):
                    yield frame
                    row += frame.rows
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
    known = known or _is_array(item) or _is_pandas(item)
    rows = isinstance(item, list) and (not item or isinstance(item[0], Mapping))
    return known or rows or hasattr(item, "to_arrow") or hasattr(item, "__arrow_c_array__")


def _are_columns(item: Mapping[Any, Any]) -> bool:
    """Whether a dict holds columns rather than one row: no value is a plain one, and the ids
    are several, or the vectors."""

    def is_column(value: Any) -> bool:
        if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__len__"):
            return False
        return bool(getattr(value, "ndim", 1) > 0)

    def holds_vectors(value: Any) -> bool:
        if is_numpy(value) or isinstance(value, (pa.Array, pa.ChunkedArray)):
            nested = pa.types.is_nested(value.type) if hasattr(value, "type") else value.ndim == 2
            return nested or bool(len(value)) and is_vector(value[0])
        return is_vector(first_cell(value))

    if not all(map(is_column, item.values())):
        return False
    return "id" in item or any(
        map(holds_vectors, [item[n] for n in item if n == "vector"] or item.values())
    )
