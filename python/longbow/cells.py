"""Cells: the values of Python, pandas and polars that columns of Arrow's are made of."""

from __future__ import annotations

import sys
from typing import Any

import pyarrow as pa

from .errors import InvalidArgument
from .vectors import is_masked, is_numpy, unmasked

#: What is raised for values that Arrow has no form for.
UNREADABLE = (pa.ArrowException, TypeError, ValueError, OverflowError)


def typed(name: str, values: Any, first_row: int = 0, from_pandas: bool = False) -> Any:
    """A column as an array of Arrow's.

    >>> typed("size", [1, None]).to_pylist()
    [1, None]
    >>> typed("size", [1, "two"])
    Traceback (most recent call last):
    longbow.errors.InvalidArgument: invalid_data: column 'size': row 1 is 'two', of type str, ...
    """
    try:
        return array(values, from_pandas)
    except UNREADABLE as error:
        odd = first_odd(values, first_row, from_pandas)
        text = f"column {name!r}: {odd}{error}; convert it to values of one type of Arrow's"
        raise InvalidArgument("invalid_data", text) from error


def array(values: Any, from_pandas: bool = False) -> Any:
    """As ``pyarrow.array``, which takes some booleans among numbers for 0 and 1: numpy's among
    integers, and Python's among floats."""
    made = pa.array(values, from_pandas=from_pandas)
    is_mixed = isinstance(values, list) or str(getattr(values, "dtype", "")) == "object"
    is_numbers = pa.types.is_integer(made.type) or pa.types.is_floating(made.type)
    if is_mixed and is_numbers and any(map(_is_boolean, _types(values))):
        raise TypeError("expected numbers, got a boolean among them")
    return made


def first_odd(values: Any, first_row: int, from_pandas: bool = False) -> str:
    """Names the first value that does not go with those before it; nothing if no value is wrong,
    but the type of all."""
    cells = getattr(values, "iloc", values)
    is_cut = cells is not values or isinstance(values, list) or is_numpy(values)
    if not is_cut or not _is_readable(cells[:0], from_pandas):
        return ""
    start, end = 0, len(values)
    while end - start > 1:
        middle = (start + end) // 2
        if _is_readable(cells[:middle], from_pandas):
            start = middle
        else:
            end = middle
    value = cells[start]
    told = f"row {first_row + start} is {repr(value)[:80]}, of type {type(value).__name__}, "
    return told + ("unlike the rows before: " if start else "which no column holds: ")


def _is_readable(values: Any, from_pandas: bool) -> bool:
    try:
        array(values, from_pandas)
    except UNREADABLE:
        return False
    return True


def _types(values: Any) -> set[type]:
    return set(map(type, values))


def _is_boolean(kind: type) -> bool:
    is_numpys = kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_")
    return kind is bool or is_numpys


def bare(cells: Any) -> Any:
    """Cells without masks of numpy's: what those hide is None."""
    ma = sys.modules.get("numpy.ma")
    if ma is None or not any(issubclass(kind, ma.MaskedArray) for kind in _types(cells)):
        return cells
    return [unmasked(cell) if is_masked(cell) else cell for cell in cells]


def foreign(data: Any, name: str | None = None) -> Any:
    """What a frame of polars or DuckDB is in Arrow, or the series ``name`` of polars."""
    is_frame = name is None
    names = data.columns if is_frame else [name]
    kinds = getattr(data, "dtypes", ()) if is_frame else [getattr(data, "dtype", None)]
    cause: Exception | None = None
    try:
        if not any(map(_holds_objects, kinds)):
            return data.to_arrow()
    except UNREADABLE as error:
        cause = error
    columns = zip(names, kinds)
    odd = next((one for one in columns if not is_arrow(data[one[0]] if is_frame else data)), None)
    what = "the data" if odd is None else f"column {odd[0]!r} of type {odd[1]}"
    why = "it holds objects of Python" if cause is None else cause
    text = f"{what} has no form in Arrow: {why}; cast it to another type, or leave it out"
    raise InvalidArgument("invalid_data", text) from cause


def is_arrow(series: Any) -> bool:
    """Whether Arrow has a form for a column of polars or DuckDB."""
    try:
        series.to_arrow()
    except UNREADABLE:
        return False
    return not _holds_objects(getattr(series, "dtype", None))


def _holds_objects(kind: Any) -> bool:
    # Of these, polars gives the addresses.
    return str(kind) == "Object"
