"""Rows that no dataset takes: not finite, null, without an id, none at all."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from wire import Wire, refused, rows
from wrong import GOOD, GOOD_ROWS, PATH, Target, Wrong, each, exchange

VECTOR = pa.list_(pa.float32(), 2)


def vectors(*values: object, data_type: pa.DataType = VECTOR) -> pa.RecordBatch:
    """Rows for the good dataset with ids from 100 on and these vectors."""
    batch = rows(len(values), 100)
    return batch.set_column(1, "vector", pa.array(values, data_type))


def ids(array: pa.Array) -> pa.RecordBatch:
    """Rows for the good dataset with these ids."""
    return rows(len(array), 100).set_column(0, "id", array)


def of_type(element: pa.DataType, *values: object) -> pa.RecordBatch:
    """Rows for a dataset of its own that has vectors of such elements."""
    return vectors(*values, data_type=pa.list_(element, 2))


def text_ids(*values: str | None) -> pa.RecordBatch:
    return ids(pa.array(values, pa.string()))


def words_of(count: int, length: int) -> pa.RecordBatch:
    """Rows that all have the same long word, which is sent once."""
    keys = pa.array([0] * count, pa.int8())
    words = pa.DictionaryArray.from_arrays(keys, pa.array(["x" * length]))
    return rows(count).append_column("word", words)


NAN, INFINITY = math.nan, math.inf

#: The dataset, a batch, the stable code, what the text names.
ROWS = {
    "NaN": (GOOD, vectors([1, 2], [3, NAN]), "not_finite", ["row 1", "'vector'", "NaN"]),
    "infinity": (GOOD, vectors([INFINITY, 2]), "not_finite", ["row 0", "'vector'"]),
    "minus infinity": (GOOD, vectors([1, 2], [1, 2], [-INFINITY, 2]), "not_finite", ["row 2"]),
    "NaN in float16": (
        "new16",
        of_type(pa.float16(), [1, 2], [NAN, 2]),
        "not_finite",
        ["row 1", "'vector'"],
    ),
    "infinity in float64": (
        "new64",
        of_type(pa.float64(), [1, 2], [1, INFINITY]),
        "not_finite",
        ["row 1", "'vector'"],
    ),
    "a float64 beyond float32": (
        "new64",
        of_type(pa.float64(), [1, 1e300]),
        "not_finite",
        ["row 0", "'vector'"],
    ),
    "elements whose distances overflow": (
        GOOD,
        vectors([1, 2], [1, -1e20]),
        "value_too_large",
        ["row 1", "'vector'", "-1e20", "e18"],
    ),
    "null vector": (GOOD, vectors([1, 2], [1, 2], None), "null_value", ["row 2", "'vector'"]),
    "null element of a vector": (
        GOOD,
        vectors([1, 2], [1, None], [1, 2]),
        "null_value",
        ["row 1", "'vector'"],
    ),
    "null id": (GOOD, ids(pa.array([1, None], pa.int64())), "null_value", ["row 1", "'id'"]),
    "null string id": ("newtext", text_ids("a", "b", None), "null_value", ["row 2", "'id'"]),
    "string id of 100,000 bytes": (
        "newtext",
        text_ids("a", "x" * 100_000),
        "bad_id",
        ["row 1", "100000", "65536"],
    ),
    "a dictionary that becomes 1 GiB": (
        "newwords",
        words_of(1024, 1 << 20),
        "bad_batch",
        ["536870912", "send smaller batches"],
    ),
    "no row": (GOOD, rows(1).slice(0, 0), "empty_batch", ["no rows", "send at least one"]),
}


def puts(table: dict) -> list[Wrong]:
    def case(name: str) -> Wrong:
        dataset, batch, code, words = table[name]
        return Wrong(name, lambda wire: wire.put(dataset, batch), code, tuple(words))

    return [case(name) for name in table]


def ingests(table: dict) -> list[Wrong]:
    def case(name: str) -> Wrong:
        dataset, batch, code, words = table[name]
        path = PATH("ingest", dataset)
        return Wrong(name, lambda wire: exchange(wire, path, batch), code, tuple(words))

    return [case(name) for name in table]


@each(*puts(ROWS))
def test_a_put_refuses_them(target: Target, wrong: Wrong) -> None:
    target.check_refused(wrong)


@each(*ingests(ROWS))
def test_an_exchange_refuses_them(target: Target, wrong: Wrong) -> None:
    target.check_refused(wrong)


@pytest.mark.parametrize("name", ["NaN", "null element of a vector", "null id", "no row"])
def test_what_came_before_in_the_stream_stands(target: Target, name: str) -> None:
    _, bad, code, words = ROWS[name]
    with refused(pa.ArrowInvalid, code, *words):
        target.wire.put("partly", rows(5), bad, rows(5, 5))
    assert target.wire.get("partly")["id"].to_pylist() == list(range(5))
    target.wire.act("delete-dataset", {"dataset": "partly"})
    target.check_alive()


def test_a_long_id_leaves_nothing_behind_that_a_restart_stumbles_over(restarts) -> None:
    def refuse(wire: Wire) -> None:
        wire.put("newtext", text_ids("x" * 100_000))

    target = restarts.start().fill()
    target.check_refused(Wrong("long id", refuse, "bad_id", ("100000",)))
    target = restarts.again()
    assert target.wire.get(GOOD).num_rows == GOOD_ROWS
