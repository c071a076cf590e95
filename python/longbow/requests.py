"""Requests: tickets and action bodies, from the arguments of the methods."""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union

import pyarrow as pa

from .errors import InvalidArgument
from .vectors import is_many, is_numpy, no_vectors, queries, query

#: One condition: ``("price", "<", 10)``, or the wire's own dictionary, which can
#: nest: ``{"logic": "OR", "filters": [...]}``.
Filter = Union[tuple[Any, ...], Mapping[str, Any]]
#: Conditions that all hold. A single one may stand by itself.
Filters = Union[None, Filter, Sequence[Filter]]


def filter_list(filters: Filters) -> list[dict[str, Any]] | None:
    """Filters in the form of the wire.

    >>> filter_list(("price", "<", 10))
    [{'field': 'price', 'operator': '<', 'value': 10}]
    >>> filter_list([("note", "is_null")])
    [{'field': 'note', 'operator': 'is_null'}]
    """
    if filters is None:
        return None
    if isinstance(filters, Mapping) or isinstance(filters, tuple) and _is_condition(filters):
        return [_condition(filters)]
    if not isinstance(filters, Iterable):
        raise InvalidArgument("invalid_filter", f"{filters!r} is no filter, nor a list of filters")
    return [_condition(one) for one in filters]


#: Characters of a text that is worth remembering.
_SHORT = 1_000


def flat_conditions(filters: Filters, where: str | None) -> tuple[Any, ...] | None:
    """Plain conditions one after the other, three values each, as what tells them
    from all others; None of those that are not plain.

    Plain are (column, operator, value) with a number, a boolean or a short text.
    Zeros are not: one may have a sign, and both are equal.

    >>> flat_conditions([("price", "<", 10), ("lang", "=", "en")], None)
    ('price', '<', 10, 'lang', '=', 'en')
    >>> flat_conditions(("id", "in", [1, 2]), None) is None
    True
    """
    if where is not None and (type(where) is not str or len(where) > _SHORT):
        return None
    if filters is None:
        return ()
    if type(filters) is tuple and filters and type(filters[0]) is str:
        filters = (filters,)
    if type(filters) is not list and type(filters) is not tuple:
        return None
    flat: list[Any] = []
    for one in filters:
        if type(one) is not tuple or len(one) != 3:
            return None
        value, kind = one[2], type(one[2])
        if kind is str:
            plain_value = len(value) <= _SHORT
        else:
            plain_value = kind is int or kind is bool or (kind is float and value != 0)
        if not (plain_value and type(one[0]) is str and type(one[1]) is str):
            return None
        flat += one
    return tuple(flat)


def _is_condition(value: tuple[Any, ...]) -> bool:
    return len(value) in (2, 3) and isinstance(value[0], str) and isinstance(value[1], str)


def _condition(one: Any) -> dict[str, Any]:
    if isinstance(one, Mapping):
        told = {name: plain(value) for name, value in one.items() if name != "filters"}
        if "filters" in one:
            within = one["filters"]
            is_list = isinstance(within, (list, tuple))
            told["filters"] = [_condition(each) for each in within] if is_list else within
        return told
    if not isinstance(one, tuple) or not _is_condition(one):
        raise InvalidArgument(
            "invalid_filter", f"{one!r} is not (column, operator, value) nor a dictionary"
        )
    condition = {"field": one[0], "operator": one[1]}
    if len(one) == 3:
        condition["value"] = plain(one[2])
    return condition


def plain(value: Any) -> Any:
    """A value that JSON can hold: numpy's and Arrow's scalars and arrays unwrapped, times in the
    form of ISO 8601, decimals and UUIDs as their text; the server casts these to the column's type.

    >>> plain(pa.scalar(3)), plain((1, 2))
    (3, [1, 2])
    >>> plain(datetime.date(2024, 2, 29))
    '2024-02-29'
    """
    if isinstance(value, pa.Scalar):
        return plain(value.as_py())
    if isinstance(value, (pa.Array, pa.ChunkedArray)):
        return plain(value.to_pylist())
    kind = value.dtype.kind if is_numpy(value) else ""
    if kind == "f" and value.dtype.itemsize > 8:
        value = _as_double(value)  # A longdouble has no equal in Python.
    if kind and kind in "biuf":
        return value.tolist()  # Numbers, perhaps many.
    if kind == "m":
        return value  # Some would become bare numbers, of a unit that nobody said.
    if kind == "M":
        # Python's times have no nanoseconds, so numpy says them: whole days, or at least seconds.
        unit = value.dtype.str[4:-1].lstrip("0123456789")
        whole = {"Y": "M8[D]", "M": "M8[D]", "W": "M8[D]", "h": "M8[s]", "m": "M8[s]"}.get(unit)
        return value.astype(whole or value.dtype).astype(str).tolist()
    if is_numpy(value) or hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (decimal.Decimal, uuid.UUID)):
        return str(value)
    if isinstance(value, (list, tuple, set, frozenset, range)):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    return value


def _as_double(value: Any) -> Any:
    import numpy

    # What is too large becomes infinite, and is refused as such: a warning would be a second
    # voice, and an exception where warnings are errors.
    with numpy.errstate(all="ignore"):
        return value.astype(float)


#: What goes as it is.
_SIMPLE = frozenset([str, int, float, bool, list, dict])


def without_none(options: Mapping[str, Any]) -> dict[str, Any]:
    """What was said, as JSON holds it; the server refuses keys it does not know, null or not."""
    return {name: _simple(value) for name, value in options.items() if value is not None}


def _simple(value: Any) -> Any:
    # Lists of filters and columns are plain already, and may be long.
    return value if type(value) in _SIMPLE else plain(value)


def check_query(vector: Any, options: Mapping[str, Any]) -> None:
    """Refuses a search for nothing."""
    if vector is not None and is_many(vector) and not len(vector):
        raise no_vectors()
    if vector is None and options.get("text_query") is None and options.get("ids") is None:
        raise InvalidArgument(
            "missing_query", "a search needs a vector, a text_query, or ids of rows to be like"
        )


def search_ticket(dataset: str, vector: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """The ticket of a search: ``vector`` is one vector, several, or None.

    >>> search_ticket("books", [1, 2], {"k": 3, "ef": None})
    {'search': {'dataset': 'books', 'vector': 'AACAPwAAAEA=', 'k': 3}}
    """
    check_query(vector, options)
    search: dict[str, Any] = {"dataset": dataset}
    if vector is not None:
        if is_many(vector):
            search["vectors"] = queries(vector)
        else:
            search["vector"] = query(vector)
    search.update(without_none(options))
    return {"search": search}


def delete_body(dataset: str, ids: Any, filters: Filters, where: str | None) -> dict[str, Any]:
    """The body of ``delete``: by ids or by a predicate, one of the two.

    >>> delete_body("books", 7, None, None)
    {'dataset': 'books', 'id': 7}
    >>> delete_body("books", [7, 8], None, None)
    {'dataset': 'books', 'ids': [7, 8]}
    """
    if (ids is None) == (filters is None and where is None):
        raise InvalidArgument("invalid_delete", "give ids, or filters/where: one of the two")
    if ids is None:
        predicate = {"filters": filter_list(filters), "where": where}
        return {"dataset": dataset, **without_none(predicate)}
    ids = plain(ids)
    if not isinstance(ids, list) and hasattr(ids, "__iter__") and not isinstance(ids, str):
        ids = [plain(one) for one in ids]
    return {"dataset": dataset, "ids" if isinstance(ids, list) else "id": ids}
