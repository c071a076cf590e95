"""Columns that differ in their type from those of the dataset, but not in kind.

numpy makes float64 where nobody asks, pandas turns whole numbers with a gap
into floats, Spark counts in 32 bits. A dataset keeps the types of its first
insert, and the server refuses others. So before an insert columns are cast to
the dataset's types where that loses nothing: numbers to numbers, texts to
texts, times to times, vectors to vectors. Floats may become narrower floats,
which is rounding. A value that has no equal in the dataset's type is refused,
with its row.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Callable

import pyarrow as pa
import pyarrow.compute as pc

from .errors import InvalidArgument, NotFound


class Known:
    """The schemas of datasets, as this client last saw them: to ask each time would cost a call."""

    def __init__(self, ask: Callable[[str], pa.Schema]) -> None:
        self._ask = ask
        self._seen: dict[str, pa.Schema] = {}

    def seen(self, dataset: str) -> pa.Schema | None:
        """That of a dataset, perhaps as it was; None if there is no such."""
        return self._seen.get(dataset) or self.now(dataset)

    def now(self, dataset: str) -> pa.Schema | None:
        """That of a dataset, asked for now."""
        self._seen.pop(dataset, None)
        try:
            schema = self._seen[dataset] = self._ask(dataset)
        except NotFound:
            return None
        return schema

    def has(self, dataset: str, schema: pa.Schema) -> bool:
        """Whether a dataset had all these columns when it was last seen, of these types."""
        seen = self._seen.get(dataset)
        return seen is not None and all(
            (at := seen.get_field_index(field.name)) >= 0 and seen.field(at).type.equals(field.type)
            for field in schema
        )


def fitted(
    batches: Iterator[pa.RecordBatch], dataset: str, known: Known, *, vectors: bool
) -> Iterator[pa.RecordBatch]:
    """The batches with the types of the dataset, where these are of the same kind.

    ``vectors`` says whether those may be cast, too. All batches have one schema. What was seen of
    the dataset may be of the past, so nothing is cast by that.

    >>> narrow = pa.record_batch({"id": pa.array([1, 2], pa.int8())})
    >>> known = Known(lambda dataset: pa.schema([("id", pa.int64())]))
    >>> wide = next(fitted(iter([narrow]), "books", known, vectors=True))
    >>> wide.schema.field("id").type
    DataType(int64)
    """
    first = next(batches, None)
    if first is None:
        return
    batches = itertools.chain([first], batches)
    schema = None if known.has(dataset, first.schema) else known.now(dataset)
    fields = list(first.schema)
    if schema is not None:
        fields = [_fit(field, schema, vectors) for field in fields]
    if fields == list(first.schema):
        yield from batches
        return
    row = 0
    for batch in batches:
        columns = zip(batch.columns, fields)
        arrays = [_cast(column, field, row) for column, field in columns]
        as_fitted = pa.schema(fields, batch.schema.metadata)
        yield pa.RecordBatch.from_arrays(arrays, schema=as_fitted)
        row += batch.num_rows


def _fit(field: pa.Field, known: pa.Schema, vectors: bool) -> pa.Field:
    at = known.get_field_index(field.name)
    have, want = _plain(field.type), known.field(at).type if at >= 0 else None
    if want is None or have.equals(want):
        return field
    if pa.types.is_fixed_size_list(want) and not vectors:
        return field
    return field.with_type(want) if _is_kin(have, want) else field


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type of a column's values: a dataset keeps no dictionaries."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_kin(have: pa.DataType, want: pa.DataType) -> bool:
    """Whether values of one type may be meant as those of another."""
    if pa.types.is_null(have):
        return True  # Of rows without a value, which is one of any type.
    lists = pa.types.is_list, pa.types.is_large_list
    if pa.types.is_fixed_size_list(want):
        same = pa.types.is_fixed_size_list(have) and have.list_size == want.list_size
        return bool(same and _is_number(have.value_type) and _is_number(want.value_type))
    if any(is_list(have) for is_list in lists) and any(is_list(want) for is_list in lists):
        equal = have.value_type.equals(want.value_type)
        return bool(equal or _is_kin(have.value_type, want.value_type))
    if pa.types.is_timestamp(have) and pa.types.is_timestamp(want):
        # A time without a zone is not one of some zone.
        return bool((have.tz is None) == (want.tz is None))
    kinds = (_is_number, _is_text, _is_binary, *_TYPES_ALIKE)
    whole_days = pa.types.is_date(have) and (pa.types.is_date(want) or _is_naive(want))
    return bool(whole_days or any(is_kind(have) and is_kind(want) for is_kind in kinds))


# Types that differ in precision or unit alone.
_TYPES_ALIKE = (pa.types.is_decimal, pa.types.is_duration, pa.types.is_time)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind) == "string_view"


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _is_naive(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.tz is None)


def _cast(column: pa.Array, field: pa.Field, first: int) -> pa.Array:
    if column.type.equals(field.type):
        return column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    differs = f"column {field.name!r} is {field.type} in the dataset and {column.type} here, and"
    try:
        return _without_loss(column, field.type)
    except pa.ArrowInvalid as error:
        row = first + _first_wrong(column, field.type)
        text = f"the value of row {row} has no equal there: {error}; correct it, or leave it out"
        raise InvalidArgument("value_does_not_fit", f"{differs} {text}") from error
    except pa.ArrowNotImplementedError as error:
        text = f"this version of pyarrow can't cast that: {error}; cast it before"
        raise InvalidArgument("schema_changed", f"{differs} {text}") from error


def _without_loss(column: pa.Array, kind: pa.DataType) -> pa.Array:
    out = column.cast(kind)
    was, now = _numbers(column), _numbers(out)
    # Arrow does not mind that floats have no room for a number.
    if pa.types.is_float16(now.type) and pa.types.is_integer(was.type):
        is_lost = not now.cast(pa.float32()).equals(was.cast(pa.float32()))
    else:
        is_lost = _infinities(now) > _infinities(was)
    if is_lost:
        raise pa.ArrowInvalid(f"{kind} has no room for a number")
    return out


def _numbers(column: pa.Array) -> pa.Array:
    while isinstance(column, (pa.ListArray, pa.LargeListArray, pa.FixedSizeListArray)):
        column = column.flatten()
    return column


def _infinities(column: pa.Array) -> int:
    if not pa.types.is_floating(column.type):
        return 0
    return pc.sum(pc.is_inf(column)).as_py() or 0


def _first_wrong(column: pa.Array, kind: pa.DataType) -> int:
    """The first row that cannot be cast, by halves."""
    start, end = 0, len(column)
    while end - start > 1:
        middle = (start + end) // 2
        try:
            _without_loss(column.slice(start, middle - start), kind)
            start = middle
        except pa.ArrowInvalid:
            end = middle
    return start
