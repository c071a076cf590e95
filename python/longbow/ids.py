"""Ids of rows: integers or text, and nothing that would have to be cut to be one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .cells import UNREADABLE, array, bare, first_odd, is_arrow
from .errors import InvalidArgument
from .vectors import is_masked, is_numpy, one_array, plain_text


def given(ids: Any) -> pa.Array:
    """The argument ``ids`` as an array.

    >>> given([7, "x"])
    Traceback (most recent call last):
    longbow.errors.InvalidArgument: invalid_ids: ids: row 1 is 'x', of type str, unlike ...
    """
    if isinstance(ids, (pa.Array, pa.ChunkedArray)):
        return one_array(ids)
    if isinstance(ids, (str, bytes, Mapping)) or not isinstance(ids, Iterable):
        text = f"ids is {repr(ids)[:80]}, of type {type(ids).__name__}; give a list of them"
        raise InvalidArgument("invalid_ids", text)
    if hasattr(ids, "to_arrow") and is_arrow(ids):
        return one_array(ids.to_arrow())
    if not (is_numpy(ids) or is_masked(ids) or hasattr(ids, "iloc")):
        ids = bare(list(ids))
    try:
        return one_array(array(ids))
    except UNREADABLE as error:
        text = f"ids: {first_odd(ids, 0)}{error}; ids are all integers, or all text"
        raise InvalidArgument("invalid_ids", text) from error


def checked(column: Any, first_row: int) -> pa.Array:
    """A column of ids, all there, and of a type that an id may have."""
    if not isinstance(column, (pa.Array, pa.ChunkedArray)):  # Cells like vectors.
        # A matrix may have no row to show.
        kind = type(column[0] if len(column) else column).__name__
        raise _of_wrong_type(kind, column[:1], first_row)
    ids = plain_text(column)
    if pa.types.is_dictionary(ids.type):
        ids = ids.dictionary_decode()
    if ids.null_count:
        row = pc.index(ids.is_null(), True).as_py()
        raise InvalidArgument("missing_id", f"row {first_row + row} has no id")
    if not (pa.types.is_integer(ids.type) or pa.types.is_string(ids.type)):
        row = _fraction(ids)
        raise _of_wrong_type(str(ids.type), ids[row : row + 1].to_pylist(), first_row + row)
    return ids


def _of_wrong_type(kind: str, example: Any, row: int) -> InvalidArgument:
    """The refusal of ids; ``example`` holds the one in that row, or nothing."""
    like = f", like {repr(example[0])[:80]} in row {row}" if len(example) else ""
    text = f"ids are integers or text, and these are {kind}{like}: convert them"
    return InvalidArgument("invalid_ids", text)


def _fraction(ids: pa.Array) -> int:
    """The first row whose number is not whole, or else the first of all."""
    if not pa.types.is_floating(ids.type):
        return 0
    numbers = ids.cast(pa.float64())
    row: int = pc.index(pc.not_equal(numbers, pc.floor(numbers)), True).as_py()
    return max(row, 0)
