"""Arguments of a wrong type, refused before anything is sent, the same whatever is behind."""

from __future__ import annotations

import math
from typing import Any

from .errors import InvalidArgument
from .requests import plain
from .unsendable import not_finite


def check_name(name: Any, what: str = "dataset") -> None:
    """Refuses a name that is no text; what a text may hold, the engine says.

    >>> check_name(5)
    Traceback (most recent call last):
    longbow.errors.InvalidArgument: bad_name: the dataset's name is 5, of type int; give a text
    """
    if not isinstance(name, str):
        raise InvalidArgument("bad_name", f"the {what}'s name is {shown(name)}; give a text")


def check_seconds(name: str, seconds: Any) -> None:
    """Refuses what is no time to wait: by NaN, one would wait for ever."""
    told = plain(seconds)
    is_number = isinstance(told, (int, float)) and not isinstance(told, bool)
    if not is_number or not told >= 0:
        text = f"{name} is {shown(seconds)}; give seconds, 0 or more"
        raise InvalidArgument("bad_value", text)


def whole(name: str, value: Any) -> int:
    """A number of something, numpy's or Arrow's too.

    >>> whole("k", 2.0)
    Traceback (most recent call last):
    longbow.errors.InvalidArgument: bad_value: k is 2.0, of type float; give a whole number
    """
    told = plain(value)
    if isinstance(told, float) and not math.isfinite(told):
        raise not_finite(name, told)
    if not isinstance(told, int) or isinstance(told, bool):
        raise InvalidArgument("bad_value", f"{name} is {shown(value)}; give a whole number")
    return told


def row_id(value: Any) -> int | str:
    """An id of one row. A float is none, not even a whole one: it would be another's beyond 2**53.

    >>> row_id(2.5)
    Traceback (most recent call last):
    longbow.errors.InvalidArgument: bad_value: the id is 2.5, of type float; give an ...
    """
    told = plain(value)
    if isinstance(told, bool) or not isinstance(told, (int, str)):
        raise InvalidArgument("bad_value", f"the id is {shown(value)}; give an integer or a text")
    return told


def shown(value: Any) -> str:
    """A value that was wrong, as texts of errors show it."""
    return f"{repr(value)[:80]}, of type {type(value).__name__}"
