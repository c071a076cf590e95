"""Tickets that are wrong: not JSON, unknown keys, values of a wrong type or out of their range."""

from __future__ import annotations

import json
from typing import Any

from wrong import GOOD, NOT_FOUND, UNIMPLEMENTED, Target, Wrong, each, raw_get

GOOD_VECTOR = [1.0, 2.0]


def ticket(name: str, text: str | bytes, code: str, *words: str, status: str) -> Wrong:
    payload = text.encode() if isinstance(text, str) else text
    return Wrong(name, lambda wire: raw_get(wire, payload), code, words, status)


def scan(what: str, code: str, *words: str, status: str = "invalid argument", **keys: Any) -> Wrong:
    return ticket(what, json.dumps({"name": GOOD, **keys}), code, *words, status=status)


def search_object(keys: dict[str, Any]) -> dict[str, Any]:
    """A search of the good dataset with these keys; a key that is None is left out."""
    merged = {"dataset": GOOD, "vector": GOOD_VECTOR, "k": 1, **keys}
    return {key: value for key, value in merged.items() if value is not None}


def search(
    name: str, code: str, *words: str, status: str = "invalid argument", **keys: Any
) -> Wrong:
    text = json.dumps({"search": search_object(keys)})
    return ticket(name, text, code, *words, status=status)


def text(name: str, payload: str | bytes, code: str, *words: str) -> Wrong:
    return ticket(name, payload, code, *words, status="invalid argument")


TEXTS = [
    text("nothing", "", "bad_name", "it is empty"),
    text("not UTF-8", b"\xff\xfegood", "bad_ticket", "UTF-8"),
    text("JSON that is not UTF-8", b'{"name": "\xff"}', "bad_ticket", "UTF-8"),
    text("JSON that ends early", '{"name": "good"', "bad_json", '{"name": "good"', "JSON"),
    text("JSON that goes on", '{"name": "good"} x', "bad_json", "trailing"),
    text("JSON with a comma too many", '{"name": "good",}', "bad_json", "trailing comma"),
    text("JSON of Python", "{'name': 'good'}", "bad_json", "'name'"),
    text("JSON in a search that ends early", '{"search": {"dataset": "good"', "bad_json", "JSON"),
    text("JSON a thousand deep", '{"name":' + "[" * 1000, "bad_json", "recursion"),
    text("a search that is a list", '{"search": []}', "bad_json", "object"),
    text("a search that is a name", '{"search": "good"}', "bad_json", "object"),
    text("a key twice", '{"name": "good", "name": "x"}', "bad_value", "duplicate", "name"),
    text("no dataset", "{}", "no_dataset", '"name"'),
    text("a key beside the search", '{"search": {}, "limit": 1}', "unknown_key", "'limit'"),
    text("a search after a name", '{"name": "x", "search": {}}', "unknown_key", "'search'"),
    text("two names", '{"name": "good", "dataset": "x"}', "bad_value", "'name'", "'dataset'"),
]

SCANS = [
    scan("an unknown key", "unknown_key", "'limt'", "did you mean 'limit'?", limt=5),
    scan("a name of a wrong type", "bad_value", "5", name=5),
    scan("a limit of a wrong type", "bad_value", "five", limit="five"),
    scan("a limit with a fraction", "bad_value", "1.5", limit=1.5),
    scan("a negative limit", "bad_value", "limit", "-1", "0 or more", limit=-1),
    scan("a negative offset", "bad_value", "offset", "-5", "0 or more", offset=-5),
    scan("an offset beyond 64 bits", "bad_value", "offset", offset=1 << 70),
    scan("columns of a wrong type", "bad_value", "columns", columns="id"),
    scan("an unknown column", "column_not_found", "'nope'", "vector", columns=["id", "nope"]),
    scan("an unknown dataset", "dataset_not_found", "'x'", status=NOT_FOUND, name="x"),
]

SEARCHES = [
    search("an unknown key", "unknown_key", "'vectr'", "did you mean 'vector'?", vectr=[1.0]),
    search("no dataset", "bad_value", "dataset", dataset=None),
    search("an unknown dataset", "dataset_not_found", "'x'", status=NOT_FOUND, dataset="x"),
    search("no vector", "no_query_vector", "'vector'", "'vectors'", vector=None),
    search("no vectors", "no_query_vector", "'vectors'", vector=None, vectors=[]),
    search("both ways", "bad_value", "'vector'", "'vectors'", vectors=[GOOD_VECTOR]),
    search("a vector of a wrong type", "bad_value", "abc", vector="abc"),
    search("a vector of strings", "bad_value", "1.0", vector=["1.0", "2.0"]),
    search("a vector of nothing", "dimension_mismatch", "expected 2, got 0", vector=[]),
    search("a short vector", "dimension_mismatch", "expected 2, got 1", vector=[1.0]),
    search("a long vector", "dimension_mismatch", "expected 2, got 3", vector=[1.0] * 3),
    search(
        "one short vector of several",
        "dimension_mismatch",
        "expected 2, got 1",
        vector=None,
        vectors=[GOOD_VECTOR, [1.0]],
    ),
    search("a vector with a null", "bad_value", "null", vector=[1.0, None]),
    search("NaN", "bad_json", "NaN", vector=[1.0, float("nan")]),
    search("infinity", "bad_json", "Infinity", vector=[1.0, float("inf")]),
    search("a number beyond float32", "bad_value", "1e39 at position 1", vector=[1.0, 1e39]),
    search("a number of overflowing distances", "value_too_large", "1e25", vector=[1.0, 1e25]),
    search("k = 0", "bad_k", "k is 0", "1 to 16384", k=0),
    search("k below zero", "bad_k", "k is -3", "1 to 16384", k=-3),
    search("k above the limit", "bad_k", "k is 16385", "1 to 16384", k=16_385),
    search("k beyond 64 bits", "bad_value", "1.8446744073709552e+19", k=1 << 64),
    search("k with a fraction", "bad_value", "1.5", k=1.5),
    search("k as a string", "bad_value", "ten", k="ten"),
    search("ef = 0", "bad_value", "ef is 0", "1 to 65536", ef=0),
    search("ef below zero", "bad_value", "ef is -1", "1 to 65536", ef=-1),
    search("ef above the limit", "bad_value", "ef is 65537", "1 to 65536", ef=65_537),
    search("nprobe = 0", "bad_value", "nprobe is 0", "1 to 16384", nprobe=0),
    search("nprobe below zero", "bad_value", "nprobe is -1", "1 to 16384", nprobe=-1),
    search("nprobe above the limit", "bad_value", "nprobe is 16385", "1 to 16384", nprobe=16_385),
    search("nprobe beside ef", "bad_value", "nprobe is 8", "no ef", nprobe=8, ef=32),
    search("a recall of 0", "bad_value", "recall_target is 0", "up to 1", recall_target=0),
    search("a recall below 0", "bad_value", "recall_target is -0.5", recall_target=-0.5),
    search("a recall above 1", "bad_value", "recall_target is 1.5", recall_target=1.5),
    search("a recall in percent", "bad_value", "recall_target is 95", recall_target=95),
    search("a recall as a string", "bad_value", "high", recall_target="high"),
    search("a recall that is NaN", "bad_json", "recall_target", recall_target=float("nan")),
    search("a time limit below zero", "bad_value", "timeout_ms is -1", timeout_ms=-1),
    search("a budget below zero", "bad_value", "budget_ms is -1", budget_ms=-1),
    search("a page with a budget", "bad_value", "budget_ms", "cursor", budget_ms=5, cursor=""),
    search("parts that are no boolean", "bad_value", "rank", score_parts="rank"),
    search("an unknown column", "column_not_found", "'nope'", "name", columns=["nope"]),
    search("an unknown vector column", "column_not_found", "'nope'", "vector", column="nope"),
    search("a column without vectors", "not_a_vector_column", "'year'", "vector", column="year"),
    search("an unknown consistency", "bad_value", "'firm'", "strong", consistency="firm"),
    search("a distance of a wrong type", "bad_value", "far", max_distance="far"),
    search(
        "a distance of words alone",
        "bad_value",
        "max_distance is 1.5",
        "words alone",
        vector=None,
        text_query="dune",
        max_distance=1.5,
    ),
    search("an alpha above 1", "bad_value", "alpha is 1.5", alpha=1.5),
    search("an exact that is no boolean", "bad_value", "maybe", exact="maybe"),
]


@each(*TEXTS)
def test_tickets_that_cannot_be_read_are_refused(target: Target, wrong: Wrong) -> None:
    target.check_refused(wrong)


@each(*SCANS)
def test_wrong_scans_are_refused(target: Target, wrong: Wrong) -> None:
    target.check_refused(wrong)


@each(*SEARCHES)
def test_wrong_searches_are_refused(target: Target, wrong: Wrong) -> None:
    target.check_refused(wrong)


def on_meta(name: str, payload: str, code: str, *words: str) -> Wrong:
    return Wrong(name, lambda wire: raw_get(wire, payload.encode(), "meta"), code, words)


@each(
    on_meta("not JSON", "{", "bad_json", "JSON"),
    on_meta("an unknown key", '{"nme": "good"}', "unknown_key", "did you mean 'name'?"),
    on_meta("k = 0", json.dumps({"search": search_object({"k": 0})}), "bad_k", "k is 0"),
)
def test_the_meta_server_refuses_them_too(target: Target, wrong: Wrong) -> None:
    target.check_refused(wrong)


def act(name: str, code: str, *words: str, status: str = "invalid argument", **keys: Any) -> Wrong:
    body = search_object(keys)
    return Wrong(name, lambda wire: wire.act("VectorSearch", body), code, words, status)


@each(
    act("an unknown key", "unknown_key", "'vectr'", "did you mean 'vector'?", vectr=[1.0]),
    act("an unknown dataset", "dataset_not_found", "'x'", status=NOT_FOUND, dataset="x"),
    act("no dataset", "bad_value", "dataset", dataset=None),
    act("no vector", "no_query_vector", "'vector'", vector=None),
    act("a short vector", "dimension_mismatch", "expected 2, got 1", vector=[1.0]),
    act("k = 0", "bad_k", "k is 0", "1 to 16384", k=0),
    act("k below zero", "bad_k", "k is -3", k=-3),
    act("k above the limit", "bad_k", "k is 16385", k=16_385),
    act("ef = 0", "bad_value", "ef is 0", ef=0),
    act("a recall above 1", "bad_value", "recall_target is 1.5", recall_target=1.5),
    act("an unknown column", "column_not_found", "'nope'", columns=["nope"]),
    act("a wrong text", "bad_text_query", "text_query", text_query='"dune'),
    act("alpha above 1", "bad_value", "alpha is 1.5", text_query="dune", alpha=1.5),
    act("an unknown fusion", "bad_value", "fusion is sum", fusion="sum"),
)
def test_the_action_refuses_them_too(target: Target, wrong: Wrong) -> None:
    target.check_refused(wrong)


MISSING = {
    "vector_format": "int8",
    "graph_alpha": 0.5,
}


def absent(key: str) -> Wrong:
    words = (f"'{key}'", "leave it out")
    keys = {key: MISSING[key]}
    return search(key, "unimplemented", *words, status=UNIMPLEMENTED, **keys)


@each(*[absent(key) for key in MISSING])
def test_what_a_search_cannot_do_yet_is_named(target: Target, wrong: Wrong) -> None:
    target.check_refused(wrong)
