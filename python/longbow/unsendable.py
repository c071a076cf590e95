"""What a request says where it holds a value that JSON has no form for."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Mapping
from typing import Any

from .errors import InvalidArgument

_FILTER = "the value of the filter on "


def unsendable(body: Any, error: Exception) -> InvalidArgument:
    """The refusal of a body that JSON can't hold, which names the option or filter that is wrong.

    >>> unsendable({"search": {"k": 3, "max_distance": math.inf}}, ValueError())
    InvalidArgument('not_finite', 'max_distance is inf; give a finite number')
    """
    for where, value in _wrong(body, ""):
        if isinstance(value, float):
            return not_finite(where, value)
        text = f"{where} is {repr(value)[:80]}, of type {type(value).__name__}"
        if where.startswith(_FILTER):
            return InvalidArgument("filter_value", f"{text}; {_remedy(value)}")
        return InvalidArgument("invalid_json", f"{text}; give a number, a text or a list of these")
    return InvalidArgument("invalid_json", f"{error}: send numbers, text and lists")


def not_finite(where: str, value: float) -> InvalidArgument:
    """The refusal of a number that is none."""
    number = "NaN" if math.isnan(value) else str(value)
    return InvalidArgument("not_finite", f"{where} is {number}; give a finite number")


def _wrong(value: Any, where: str) -> Iterator[tuple[str, Any]]:
    """The values that JSON can't hold, each with its place."""
    if isinstance(value, float):
        if not math.isfinite(value):
            yield where or "a value", value
    elif isinstance(value, Mapping):
        for name, each in value.items():
            yield from _wrong(each, _place(value, name, where))
    elif isinstance(value, (list, tuple)):
        for at, each in enumerate(value):
            yield from _wrong(each, f"{where}[{at}]")
    elif value is not None and not isinstance(value, (str, int)):
        yield where or "a value", value


def _place(around: Mapping[Any, Any], name: Any, where: str) -> str:
    if name == "value" and "field" in around:
        return f"{_FILTER}{around['field']!r}"
    # How tickets are packed is nothing that callers see.
    return f"{where}.{name}" if where and where != "search" else str(name)


def _remedy(value: Any) -> str:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "compare bytes by where=, like raw = X'00ff'"
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if isinstance(value, datetime.timedelta) or kind == "m":
        return "give a number in the unit of the column"
    return "give a number, a text, a time or a list of these"
