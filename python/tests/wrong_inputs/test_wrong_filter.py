"""Filters that are wrong, wherever they may stand: in scans, searches, deletes and listings."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from wire import Wire
from wrong import GOOD, Target, Wrong, each


def one(**keys: Any) -> dict[str, Any]:
    """A good filter with some keys of another value; None leaves a key out."""
    merged = {"field": "year", "operator": "=", "value": 2003, **keys}
    return {key: value for key, value in merged.items() if value is not None}


#: A filter, the stable code, what the text names.
FILTERS = {
    "an unknown field": (one(field="yeer"), "column_not_found", ["'yeer'", "year"]),
    "a field of a wrong type": (one(field=5), "bad_value", ["5"]),
    "no field": (one(field=None), "bad_filter", ["'field'"]),
    "no operator": (one(operator=None), "bad_filter", ["'operator'"]),
    "both operators": (one(op=">"), "bad_filter", ["'operator'", "'op'"]),
    "an unknown operator": (one(operator="=~"), "unknown_operator", ["'=~'", ">="]),
    "an empty operator": (one(operator=""), "unknown_operator", ["''"]),
    "a word for a number": (one(value="MMIII"), "filter_value", ["MMIII", "'year'", "Int32"]),
    "a fraction for an integer": (one(value=1.5), "filter_value", ["1.5", "'year'"]),
    "a number too large": (one(value=1 << 40), "filter_value", ["1099511627776", "Int32"]),
    "an empty value": (one(value=""), "filter_value", ["'year'", "Int32"]),
    "null": ({**one(), "value": None}, "filter_value", ["null", "'year'"]),
    "no value": (one(value=None), "filter_value", ["'year'"]),
    "a list": (one(value=[1, 2]), "filter_value", ["[1,2]", "'year'"]),
    "an object": (one(value={"a": 1}), "filter_value", ["'year'"]),
    "a vector column": (one(field="vector", value="1.0"), "filter_value", ["'vector'"]),
    "an unknown key": ({**one(), "feld": 1}, "unknown_key", ["'feld'", "did you mean 'field'?"]),
    "a filter that is a word": ("year = 2003", "bad_json", ["year = 2003"]),
    "a word for a list": (one(operator="in", value="2003"), "filter_value", ["list", "'year'"]),
    "a wrong value of a list": (one(operator="in", value=[1, "x"]), "filter_value", ["'x'"]),
    "a pattern for a number": (one(operator="LIKE"), "filter_operator", ["like", "Int32"]),
    "a part of a number": (one(operator="contains"), "filter_operator", ["contains", "Int32"]),
    "OR of nothing": (one(logic="OR"), "bad_filter", ["OR", "group"]),
    "two in one": (one(filters=[one()]), "bad_filter", ["'filters'", "beside"]),
    "an unknown field within": (
        {"logic": "NOT", "filters": [one(field="yeer")]},
        "column_not_found",
        ["'yeer'", "did you mean 'year'"],
    ),
    "an unknown logic": (one(logic="XOR"), "bad_filter", ["'XOR'", "AND"]),
}

Send = Callable[[Wire, Any], object]


def scan(wire: Wire, wrong: Any) -> object:
    return wire.get({"name": GOOD, "filters": [one(), wrong]})


def search(wire: Wire, wrong: Any) -> object:
    return wire.search(GOOD, vector=[1.0, 2.0], k=1, filters=[wrong])


def delete(wire: Wire, wrong: Any) -> object:
    return wire.act("delete", {"dataset": GOOD, "filters": [wrong]})


def listing(wire: Wire, wrong: Any) -> object:
    return list(wire.meta.list_flights(json.dumps({"filters": [wrong]}).encode()))


def refused(send: Send) -> list[Wrong]:
    def case(name: str) -> Wrong:
        sent, code, words = FILTERS[name]
        return Wrong(name, lambda wire: send(wire, sent), code, tuple(words))

    return [case(name) for name in FILTERS]


@each(*refused(scan))
def test_a_scan_refuses_them(target: Target, wrong: Wrong) -> None:
    target.check_refused(wrong)


@each(*refused(search))
def test_a_search_refuses_them(target: Target, wrong: Wrong) -> None:
    target.check_refused(wrong)


@each(*refused(delete))
def test_a_delete_refuses_them_and_deletes_nothing(target: Target, wrong: Wrong) -> None:
    target.check_refused(wrong)


LISTINGS = [
    ("an unknown field", one(field="size"), "column_not_found", "'size'", "name, rows"),
    ("a word for a count", one(field="rows", value="x"), "filter_value", "'rows'", "'x'"),
    ("a count below zero", one(field="rows", value=-1), "filter_value", "'rows'", "-1"),
    ("an unknown key", {**one(), "feld": 1}, "unknown_key", "'feld'", "did you mean 'field'?"),
    ("an unknown operator", one(field="rows", operator="~"), "unknown_operator", "'~'", ">="),
]


@each(
    *[
        Wrong(name, lambda wire, sent=sent: listing(wire, sent), code, tuple(words))
        for name, sent, code, *words in LISTINGS
    ]
)
def test_a_listing_refuses_them(target: Target, wrong: Wrong) -> None:
    target.check_refused(wrong)
