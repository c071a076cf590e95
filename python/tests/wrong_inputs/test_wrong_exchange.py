"""Exchanges that are wrong: queries of wrong columns, types and values; requests for the log."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from wire import Wire
from wrong import COMMAND, GOOD, NOT_FOUND, Target, Wrong, each, exchange

LISTS = pa.list_(pa.float32())


def queries(count: int = 1, **columns: Any) -> pa.RecordBatch:
    """Good queries with some columns of another kind; a column that is None is left out."""
    good = {
        "dataset": pa.array([GOOD] * count),
        "k": pa.array([1] * count, pa.int32()),
        "query_vector": pa.array([[1.0, 2.0]] * count, LISTS),
    }
    merged = {**good, **columns}
    return pa.record_batch({name: array for name, array in merged.items() if array is not None})


def case(
    what: str, batch: pa.RecordBatch, code: str, *words: str, status: str = "invalid argument"
) -> Wrong:
    def call(wire: Wire) -> None:
        exchange(wire, COMMAND(b"VectorSearch"), batch)

    return Wrong(what, call, code, words, status)


def ints(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int32())


def vectors(*values: Any, of: pa.DataType = LISTS) -> pa.Array:
    return pa.array(values, of)


WRONG = [
    case("no dataset", queries(dataset=None), "missing_column", "'dataset'", "utf8"),
    case("no k", queries(k=None), "missing_column", "'k'", "int32"),
    case("no vectors", queries(query_vector=None), "missing_column", "'query_vector'"),
    case("an unknown column", queries(eff=ints(5)), "unknown_key", "'eff'", "did you mean 'ef'?"),
    case("datasets as numbers", queries(dataset=ints(1)), "bad_query_column", "'dataset'", "Int32"),
    case("k as a string", queries(k=pa.array(["1"])), "bad_query_column", "'k'", "Utf8"),
    case("k as int64", queries(k=pa.array([1])), "bad_query_column", "'k'", "Int64", "int32"),
    case("ef as a float", queries(ef=pa.array([5.0])), "bad_query_column", "'ef'", "Float64"),
    case(
        "vectors of float64",
        queries(query_vector=vectors([1.0, 2.0], of=pa.list_(pa.float64()))),
        "bad_query_column",
        "'query_vector'",
        "Float64",
    ),
    case(
        "vectors that are numbers",
        queries(query_vector=pa.array([1.0])),
        "bad_query_column",
        "'query_vector'",
        "Float64",
    ),
    case(
        "a dataset that is null",
        queries(2, dataset=pa.array([GOOD, None])),
        "bad_query_column",
        "row 1",
        "'dataset'",
    ),
    case("a k that is null", queries(2, k=ints(1, None)), "bad_query_column", "row 1", "'k'"),
    case(
        "a vector that is null",
        queries(2, query_vector=vectors([1.0, 2.0], None)),
        "bad_query_column",
        "row 1",
        "'query_vector'",
    ),
    case(
        "a vector with a null",
        queries(query_vector=vectors([1.0, None])),
        "bad_query_column",
        "row 0",
        "'query_vector'",
    ),
    case(
        "a short vector",
        queries(query_vector=vectors([1.0])),
        "dimension_mismatch",
        "expected 2, got 1",
    ),
    case(
        "NaN", queries(query_vector=vectors([1.0, float("nan")])), "not_finite", "position 1", "NaN"
    ),
    case(
        "infinity", queries(query_vector=vectors([float("inf"), 1.0])), "not_finite", "position 0"
    ),
    case("k = 0", queries(k=ints(0)), "bad_k", "k is 0", "1 to 16384"),
    case("k below zero", queries(k=ints(-2)), "bad_k", "k is -2", "1 to 16384"),
    case("k above the limit", queries(k=ints(16_385)), "bad_k", "k is 16385", "1 to 16384"),
    case("ef = 0", queries(ef=ints(0)), "bad_value", "ef is 0", "1 to 65536"),
    case("ef below zero", queries(ef=ints(-1)), "bad_value", "ef is -1", "1 to 65536"),
    case("ef above the limit", queries(ef=ints(70_000)), "bad_value", "ef is 70000", "1 to 65536"),
    case(
        "an unknown dataset",
        queries(dataset=pa.array(["x"])),
        "dataset_not_found",
        "'x'",
        status=NOT_FOUND,
    ),
    case(
        "a dictionary",
        queries(dataset=pa.array([GOOD]).dictionary_encode()),
        "unsupported_type",
        "'dataset'",
    ),
]


@each(*WRONG)
def test_wrong_queries_are_refused(target: Target, wrong: Wrong) -> None:
    target.check_refused(wrong)


def test_queries_before_a_wrong_one_are_answered(target: Target) -> None:
    answered = []

    def call(wire: Wire) -> None:
        writer, reader = wire.data.do_exchange(COMMAND(b"VectorSearch"))
        with writer:
            writer.begin(queries().schema)
            writer.write_batch(queries(2))
            answered.append(reader.read_chunk().data["query_index"].to_pylist())
            writer.write_batch(queries(dataset=pa.array(["x"])))
            writer.done_writing()
            list(reader)

    target.check_refused(Wrong("second", call, "dataset_not_found", ("'x'",), NOT_FOUND))
    assert answered == [[0, 1]]


def follow(request: bytes):
    def call(wire: Wire) -> None:
        writer, reader = wire.data.do_exchange(COMMAND(b"sync"))
        with writer:
            writer.write_metadata(request)
            writer.done_writing()
            list(reader)

    return call


@each(
    Wrong("not JSON", follow(b"{"), "bad_json", ("sync request", "from")),
    Wrong("a word", follow(b'{"from": "now"}'), "bad_value", ("now", "correct it")),
    Wrong("below zero", follow(b'{"from": -1}'), "bad_value", ("-1", "correct it")),
    Wrong("an unknown key", follow(b'{"form": 1}'), "unknown_key", ("did you mean 'from'?",)),
)
def test_wrong_requests_for_the_log_are_refused(target: Target, wrong: Wrong) -> None:
    target.check_refused(wrong)
