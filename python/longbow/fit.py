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

from collections.abc import Iterator
from typing import Callable

import pyarrow as pa
import pyarrow.compute as pc

from .errors import InvalidArgument, LongbowError
from .results import DatasetInfo


class Known:
    """The schemas of datasets, as this client last saw them: asking costs a call."""

    def __init__(self) -> None:
        self._schemas: dict[str, pa.Schema] = {}

    def schema(self, ask: Callable[[str], DatasetInfo], dataset: str) -> pa.Schema | None:
        """That of a dataset; None if there is no such, or nobody can say."""
        schema = self._schemas.get(dataset)
        if schema is None:
            try:
                schema = self._schemas[dataset] = ask(dataset).schema
            except LongbowError:
                return None  # If it is more than not there, the insert says so.
        return schema

    def forget(self, dataset: str) -> None:
        """What was seen of a dataset is no longer to be relied on."""
        self._schemas.pop(dataset, None)


def fitted(
    batches: Iterator[pa.RecordBatch], known: pa.Schema, *, vectors: bool
) -> Iterator[pa.RecordBatch]:
    """The batches with the types of ``known``, where these are of the same kind.

    ``vectors`` says whether those may be cast, too. All batches have one schema.

    >>> narrow = pa.record_batch({"id": pa.array([1, 2], pa.int8())})
    >>> known = pa.schema([("id", pa.int64())])
    >>> [batch.schema.field("id").type for batch in fitted(iter([narrow]), known, vectors=True)]
    [DataType(int64)]
    """
    row = 0
    for batch in batches:
        fields = [_fit(field, known, vectors) for field in batch.schema]
        if fields == list(batch.schema):
            yield batch
        else:
            columns = zip(batch.columns, fields)
            arrays = [_cast(column, field, row) for column, field in columns]
            schema = pa.schema(fields, batch.schema.metadata)
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        row += batch.num_rows


def _fit(field: pa.Field, known: pa.Schema, vectors: bool) -> pa.Field:
    at = known.get_field_index(field.name)
    if at < 0 or field.type.equals(known.field(at).type):
        return field
    want = known.field(at).type
    if pa.types.is_fixed_size_list(want) and not vectors:
        return field
    return field.with_type(want) if _is_kin(field.type, want) else field


def _is_kin(have: pa.DataType, want: pa.DataType) -> bool:
    """Whether values of one type may be meant as those of another."""
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
    # What is too large for a float becomes an infinity there, which Arrow does not mind.
    if _infinities(out) > _infinities(column):
        raise pa.ArrowInvalid(f"a number is beyond the range of {kind}")
    return out


def _infinities(column: pa.Array) -> int:
    while isinstance(column, (pa.ListArray, pa.LargeListArray, pa.FixedSizeListArray)):
        column = column.flatten()
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
