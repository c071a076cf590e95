"""Filters, words, hybrids, examples, pages and groups, from the client's side."""

from __future__ import annotations

import datetime as dt
import json
import urllib.error
import urllib.request

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import longbow

WORDS = ["red fox", "red hen", "grey fox", "brown bear", "red red fox and a hen", None]


def rows(count: int) -> pa.Table:
    numbers = pa.array([float(n // 2 if n % 2 else 0) for n in range(2 * count)], pa.float32())
    return pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "vector": pa.FixedSizeListArray.from_arrays(numbers, 2),
            "kind": pa.array([n % 3 for n in range(count)], pa.int32()),
            "words": pa.array([WORDS[n % len(WORDS)] for n in range(count)]),
        }
    )


@pytest.fixture
def animals(client, dataset) -> str:
    client.insert(dataset, rows(60))
    return dataset


def ids(table: pa.Table) -> list[int]:
    return table["id"].to_pylist()


def test_filters_of_every_kind_find_and_fetch_the_same(client, animals) -> None:
    for options, expected in [
        (dict(where="kind = 1 AND id < 10"), [1, 4, 7]),
        (dict(filters=("id", "in", [5, 3, 99])), [3, 5]),
        (dict(filters=[("words", "is_null"), ("id", "<", 20)]), [5, 11, 17]),
        (dict(filters={"logic": "NOT", "filters": [("id", ">", 1)]}), None),
        (dict(where="words LIKE '%hen' AND id < 9"), [1, 4, 7]),
        (dict(filters=("kind", "=", 2), where="id BETWEEN 1 AND 6"), [2, 5]),
    ]:
        if expected is None:
            nested = {"field": "id", "operator": ">", "value": 1}
            options, expected = dict(filters={"logic": "NOT", "filters": [nested]}), [0, 1]
        assert ids(client.download_arrow(animals, **options)) == expected
        found = client.search(animals, [0.0, 0.0], k=60, **options)
        assert sorted(ids(found)) == expected
    client.delete(animals, where="kind = 0")
    assert client.get_info(animals).rows == 40
    assert ids(client.download_arrow(animals, where="kind = 0")) == []


def test_filters_take_pythons_and_numpys_values(client, dataset) -> None:
    moments = [dt.datetime(2024, 2, 29, hour) for hour in range(3)]
    data = {
        "id": range(3),
        "vector": [[0.0, 1.0]] * 3,
        "ratio": pa.array([0.5, 1.5, 2.5], pa.float32()),
        "small": pa.array([0, 1, 2], pa.int8()),
        "flag": [False, True, False],
        "at": moments,
        "day": [moment.date() for moment in moments],
        "raw": [b"a", b"\xff", b"c"],
        "took": pa.array([1000, 2000, 3000], pa.duration("ms")),
    }
    client.insert(dataset, data)
    for filters, expected in [
        (("ratio", ">", np.float32(1)), [1, 2]),
        (("ratio", "in", np.array([0.5, 2.5], "f2")), [0, 2]),
        (("small", "=", np.int64(2)), [2]),
        (("small", "in", [np.uint8(0), pa.scalar(1)]), [0, 1]),
        (("flag", "=", np.True_), [1]),
        (("at", ">=", moments[1]), [1, 2]),
        (("at", "<", np.datetime64(moments[1], "ns")), [0]),
        (("at", "=", pd.Timestamp(moments[2])), [2]),
        (("day", "=", moments[0].date()), [0, 1, 2]),
        ({"field": "small", "operator": "<", "value": np.int8(1)}, [0]),
        ({"logic": "OR", "filters": [("small", "=", np.int8(0)), ("flag", "=", True)]}, [0, 1]),
        (("took", ">", 1500), [1, 2]),
    ]:
        assert ids(client.download_arrow(dataset, filters=filters)) == expected
        assert sorted(ids(client.search(dataset, [0.0, 1.0], filters=filters))) == expected
        found, _ = client.search_numpy(dataset, [0.0, 1.0], filters=filters)
        assert sorted(found.tolist()) == expected
    assert ids(client.download_arrow(dataset, where="raw = X'ff'")) == [1]


@pytest.mark.parametrize("value", [b"a", dt.timedelta(seconds=1), np.timedelta64(1, "s")], ids=repr)
def test_a_filter_of_another_kind_is_refused_alike_by_every_call(client, animals, value) -> None:
    filters = [("id", ">", 3), ("kind", "=", value)]
    calls = [
        lambda: client.search(animals, [0.0, 0.0], filters=filters),
        lambda: client.search_numpy(animals, [0.0, 0.0], filters=filters),
        lambda: client.download_arrow(animals, filters=filters),
        lambda: client.delete(animals, filters=filters),
    ]
    for call in calls:
        with pytest.raises(longbow.InvalidArgument, match="the filter on 'kind' is") as caught:
            call()
        assert caught.value.code == "filter_value"
    assert client.get_info(animals).rows == 60


OPTIONS = ["max_distance", "recall_target", "alpha", "mmr", "k", "ef", "timeout_ms", "offset"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), np.float32("-inf")], ids=str)
@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_that_is_not_finite_is_named(client, animals, name, value) -> None:
    with pytest.raises(longbow.InvalidArgument, match=f"^not_finite: {name} is") as caught:
        client.search(animals, [0.0, 0.0], **{name: value})
    assert ("NaN" if value != value else str(float(value))) in caught.value.message
    if name in ("recall_target", "k", "ef"):
        with pytest.raises(longbow.InvalidArgument, match=f": {name} is"):
            client.search_numpy(animals, [[0.0, 0.0]], **{name: value})


def test_words_vectors_and_both(client, animals) -> None:
    found = client.search(animals, k=3, text_query="bear", columns=["words"])
    assert found["words"].to_pylist() == ["brown bear"] * 3
    assert found["distance"].null_count == 3
    assert longbow.query_info(found).strategy == "text"
    both = client.search(animals, [0.0, 0.0], k=5, text_query='"red fox"')
    assert longbow.query_info(both).strategy == "hybrid"
    assert both["distance"].null_count == 0
    # The nearest of those with the words is first on both sides.
    assert ids(both)[0] == 0
    scores = both["score"].to_pylist()
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == pytest.approx(2 / 61)
    alone = client.search(animals, [0.0, 0.0], k=5, text_query="hen", alpha=1.0)
    assert ids(alone) == ids(client.search(animals, [0.0, 0.0], k=5))
    text = client.search(animals, [0.0, 0.0], k=5, text_query="hen", alpha=0.0, where="id > 30")
    assert all(id > 30 and id % 6 in (1, 4) for id in ids(text))
    short = client.search(animals, k=50, text_query="+bear -brown")
    assert short.num_rows == 0
    assert "match the words" in longbow.query_info(short).short_because
    client.insert(animals, rows(1).set_column(3, "words", pa.array(["an unheard-of okapi"])))
    assert ids(client.search(animals, k=1, text_query="okapi")) == [0]


def test_a_score_is_told_in_its_parts(client, animals) -> None:
    both = dict(text_query='"red fox"', score_parts=True)
    found = client.search(animals, [0.0, 0.0], k=5, **both)
    kind = found.schema.field("score_parts").type
    assert [kind.field(n).name for n in range(kind.num_fields)] == ["vector", "text"]
    for row in found.to_pylist():
        parts = row["score_parts"]
        assert (parts["text"] is not None) == (row["id"] % 6 in (0, 4))
        assert (parts["vector"]["rank"], row["distance"] >= 0) == (row["id"] + 1, True)
        told = [part for part in parts.values() if part is not None]
        assert row["score"] == pytest.approx(sum(part["contribution"] for part in told))
        assert all(part["contribution"] == pytest.approx(1 / (60 + part["rank"])) for part in told)
    weighted = client.search(animals, [0.0, 0.0], k=3, fusion="weighted", alpha=0.9, **both)
    best = weighted.to_pylist()[0]["score_parts"]
    assert best["vector"] == {"rank": 1, "score": 1.0, "contribution": pytest.approx(1.8)}
    assert best["text"]["rank"] == 1 and best["text"]["contribution"] == pytest.approx(0.2)
    words = client.search(animals, k=2, text_query="bear", score_parts=True).to_pylist()
    for rank, row in enumerate(words, 1):
        score = row["score"]
        told = {"rank": rank, "score": score, "contribution": score}
        assert row["score_parts"] == {"text": told}
    several = client.search(animals, [[0.0, 0.0], [9.0, 0.0]], k=2, score_parts=True)
    ranks = [row["score_parts"]["vector"]["rank"] for row in several.to_pylist()]
    assert ranks == [1, 2, 1, 2]
    none = client.search(animals, [0.0, 0.0], where="id < 0", **both)
    assert (none.num_rows, none.schema.field("score_parts").type) == (0, kind)
    assert "score_parts" not in client.search(animals, [0.0, 0.0]).column_names


def test_a_budget_ends_a_search_and_says_so(client, animals) -> None:
    for options in [
        {},
        {"exact": True},
        {"where": "kind = 1"},
        {"text_query": "fox"},
        {"group_by": "kind"},
    ]:
        spent = client.search(animals, [0.0, 0.0], k=3, budget_ms=0, **options)
        info = longbow.query_info(spent)
        assert spent.num_rows == 0
        assert info.partial_because == "the budget of 0 ms ran out before 1 of 1 queries had ended"
        assert info.short_because == "the budget ran out with 0 rows found"
        assert "partial_because" in longbow.explain(spent)
        ample = client.search(animals, [0.0, 0.0], k=3, budget_ms=3_600_000, **options)
        assert ids(ample) == ids(client.search(animals, [0.0, 0.0], k=3, **options))
        assert ample.num_rows == 3
        assert longbow.query_info(ample).partial_because is None
    # More queries than one message answers.
    many = client.search(animals, [[0.0, 0.0]] * 600, k=3, budget_ms=0)
    assert many.num_rows == 0
    assert "of 0 ms" in longbow.query_info(many).partial_because
    with pytest.raises(longbow.DeadlineExceeded):
        client.search(animals, [0.0, 0.0], timeout_ms=0, budget_ms=3_600_000)
    with pytest.raises(longbow.InvalidArgument, match="budget_ms"):
        client.search(animals, [0.0, 0.0], cursor="", budget_ms=5)


def test_pages_groups_and_examples(client, animals) -> None:
    seen: list[int] = []
    cursor: str | None = ""
    while cursor is not None:
        page = client.search(animals, [0.0, 0.0], k=16, cursor=cursor)
        seen += ids(page)
        cursor = longbow.query_info(page).cursor
    assert seen == list(range(60))
    first = longbow.query_info(client.search(animals, [0.0, 0.0], k=5, cursor="")).cursor
    # More rows of each, and other columns, are the same search.
    more = client.search(animals, [0.0, 0.0], k=9, cursor=first, columns=["kind"])
    assert ids(more) == list(range(5, 14))
    for other in ({"vector": [1.0, 0.0]}, {"where": "id < 50"}, {"max_distance": 9.0}):
        with pytest.raises(longbow.InvalidArgument, match="of another search"):
            client.search(animals, **{"vector": [0.0, 0.0], **other}, k=5, cursor=first)
    groups = client.search(animals, [0.0, 0.0], k=2, group_by="kind", group_size=2)
    assert ids(groups) == [0, 3, 1, 4]
    assert ids(client.search(animals, [0.0, 0.0], k=2, offset=7)) == [7, 8]
    assert ids(client.search(animals, ids=[30], k=2)) == [29, 31]
    assert ids(client.search(animals, ids=[30], negative_ids=[20], k=1)) == [40]
    diverse = client.search(animals, [0.0, 0.0], k=3, mmr=0.2)
    assert ids(diverse)[0] == 0 and max(ids(diverse)) > 5


def test_a_second_opinion(client, animals) -> None:
    by_id = client.search(animals, [0.0, 0.0], k=3, rerank=lambda found: ids(found))
    assert ids(by_id) == [11, 10, 9]
    assert by_id["score"].to_pylist() == [11.0, 10.0, 9.0]
    with pytest.raises(longbow.InvalidArgument, match="bad_rerank"):
        client.search(animals, [0.0, 0.0], rerank=lambda found: [1.0])
    for wrong in (None, 7, ["a"] * 40, [None] * 40, [float("nan")] * 40):
        with pytest.raises(longbow.InvalidArgument, match="bad_rerank"):
            client.search(animals, [0.0, 0.0], rerank=lambda found, wrong=wrong: wrong)
    with pytest.raises(longbow.InvalidArgument, match="no cursor with rerank"):
        client.search(animals, [0.0, 0.0], rerank=ids, cursor="")
    with pytest.raises(longbow.InvalidArgument, match="bad_rerank"):
        client.search(animals, [0.0, 0.0], rerank=5)
    with pytest.raises(longbow.InvalidArgument, match="rerank_from is 5"):
        client.search(animals, [0.0, 0.0], rerank_from=5)


class Curl:
    """The gateway, with the standard library alone."""

    def __init__(self, server) -> None:
        self.base = f"http://{server.http}/v1"

    def __call__(self, path: str, body=None, method: str | None = None, **headers: str):
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        if data is not None:
            headers.setdefault("Content_Type", "application/json")
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.base + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def json(self, path: str, body=None, **options):
        status, answer = self(path, body, **options)
        return status, json.loads(answer)


@pytest.fixture
def curl(server) -> Curl:
    return Curl(server)


def test_what_rows_are_to_be_is_as_the_dataset_is(curl, remote, dataset) -> None:
    own = [{"id": 0, "vector": [0, 0.5], "words": "fox"}]
    path = f"/datasets/{dataset}/rows"
    assert curl.json(f"{path}?metric=cosine", own)[0] == 200
    for asked, code, words in [
        ("metric=euclidean", "metric_changed", "cosine"),
        ("metric=bogus", "unknown_metric", "bogus"),
        ("vectors=vector,nope", "bad_value", "nope"),
        ("vectors=words", "bad_value", "words"),
    ]:
        status, told = curl.json(f"{path}?{asked}", own)
        assert (status, told["code"]) == (400, code) and words in told["message"], told
    arrow, sink = "application/vnd.apache.arrow.stream", pa.BufferOutputStream()
    table = remote.download_arrow(dataset)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    body = bytes(sink.getvalue())
    for asked in ("metric=cosine", "vectors=vector"):
        status, told = curl.json(f"{path}?{asked}", body, Content_Type=arrow)
        assert (status, told["code"]) == (400, "bad_value"), told
    status, told = curl.json(f"{path}?metric=cosine&vectors=vector", own)
    assert (status, told["rows"]) == (200, 1)


def test_the_gateway_does_what_flight_does(curl, remote, dataset) -> None:
    put = [
        {"id": n, "vector": [n, 0.5], "words": WORDS[n % 5], "tags": ["a", "b"][: n % 3]}
        for n in range(30)
    ]
    status, told = curl.json(f"/datasets/{dataset}/rows?metric=cosine", put)
    assert (status, told["rows"], told["searchable"]) == (200, 30, True)
    status, about = curl.json(f"/datasets/{dataset}")
    assert (about["rows"], about["metric"]) == (30, "cosine")
    assert dataset in {one["name"] for one in curl.json("/datasets")[1]["datasets"]}
    status, got = curl.json(f"/datasets/{dataset}/rows?where=id%20%3E%3D%2027&columns=id,tags")
    assert got["rows"] == [
        {"id": 27, "tags": []},
        {"id": 28, "tags": ["a"]},
        {"id": 29, "tags": ["a", "b"]},
    ]
    search = {"dataset": dataset, "vector": [1.0, 0.0], "k": 2, "where": "array_has(tags, 'b')"}
    status, found = curl.json("/search", search)
    same = remote.search(dataset, [1.0, 0.0], k=2, where="array_has(tags, 'b')")
    assert [row["id"] for row in found["rows"]] == ids(same) == [29, 26]
    assert found["query"]["returned"] == 2
    hybrid = {"dataset": dataset, "vector": [1.0, 0.0], "text_query": "fox", "k": 1}
    status, told = curl.json("/search", {**hybrid, "score_parts": True})
    parts = told["rows"][0]["score_parts"]
    assert sum(part["contribution"] for part in parts.values()) == pytest.approx(
        told["rows"][0]["score"], rel=1e-5
    )
    assert parts["vector"]["rank"] >= 1 and parts["text"]["rank"] >= 1
    status, told = curl.json("/search", {**hybrid, "budget_ms": 0})
    assert (status, told["rows"]) == (200, [])
    assert told["query"]["partial_because"].startswith("the budget of 0 ms ran out")
    arrow = "application/vnd.apache.arrow.stream"
    status, stream = curl("/search", search, Accept=arrow)
    assert pa.ipc.open_stream(stream).read_all()["id"].equals(same["id"])
    status, stream = curl("/rows", {"name": dataset, "limit": 7}, Accept=arrow)
    table = pa.ipc.open_stream(stream).read_all()
    assert table.num_rows == 7
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    status, told = curl(f"/datasets/{dataset}/rows", bytes(sink.getvalue()), Content_Type=arrow)
    assert status == 200
    hybrid = {"dataset": dataset, "vector": [1.0, 0.0], "text_query": "bear", "k": 3}
    assert curl.json("/search", hybrid)[1]["query"]["strategy"] == "hybrid"
    objects = curl.json("/actions/HybridSearch", hybrid)[1]
    assert {"ID", "Distance", "Score", "Metadata", "Vector"} == set(objects[0])
    nearest = f'SELECT id FROM "{dataset}" WHERE id > $2 ORDER BY distance(vector, $1) LIMIT 2'
    status, found = curl.json("/sql", {"sql": nearest, "parameters": [[1.0, 0.0], 20]})
    assert (status, found) == (200, {"rows": [{"id": 29}, {"id": 28}]})
    assert curl.json("/sql", {"sql": f'SELECT count(*) AS n FROM "{dataset}"'})[1]["rows"] == [
        {"n": 30}
    ]
    more = f"/datasets/{dataset}/rows?add_columns=false"
    status, told = curl.json(more, [{"id": 0, "vector": [0, 0.5], "word": "x"}])
    assert (status, told["code"]) == (400, "column_not_found")
    status, told = curl.json("/delete", {"dataset": dataset, "where": "id < 10"})
    assert (status, told["status"], told["rows"]) == (200, "deleted", 10)
    assert curl.json(f"/datasets/{dataset}")[1]["rows"] == 20
    assert curl.json("/actions/check_readiness", {"dataset": dataset})[1]["rows"] == 20
    assert curl.json(f"/datasets/{dataset}", method="DELETE")[0] == 200
    assert curl.json(f"/datasets/{dataset}")[0] == 404


def test_the_document_names_every_path(curl) -> None:
    status, document = curl.json("/openapi.json")
    assert status == 200 and document["openapi"].startswith("3.")
    for path, operations in document["paths"].items():
        assert path.startswith("/v1/")
        at = path.removeprefix("/v1").replace("{name}", "nowhere")
        for method in operations.keys() - {"parameters"}:
            body = None if method in ("get", "delete") else {}
            status, answer = curl(at, body, method=method.upper())
            # It is there: no page, and the wrong method, have texts of their own.
            assert b"unknown_path" not in answer and status != 405, (path, method)


REFUSED = [
    ("/nothing", None, {}, 404, "unknown_path"),
    ("/datasets/x/rows?limit=a", None, {}, 400, "bad_query"),
    ("/datasets/x/rows?limt=1", None, {}, 400, "bad_query"),
    ("/datasets/x/rows?durable=maybe", [1], {}, 400, "bad_query"),
    ("/datasets/%ff/rows", None, {}, 400, "bad_path"),
    ("/search", None, {}, 405, "wrong_method"),
    ("/datasets/nowhere", None, {}, 404, "dataset_not_found"),
    ("/search", {"dataset": "nowhere", "vector": [1]}, {}, 404, "dataset_not_found"),
    ("/search", {"vectr": [1]}, {}, 400, "unknown_key"),
    ("/search", b"{", {}, 400, "bad_json"),
    ("/search", b"{}", {"Content_Type": "text/plain"}, 415, "content_type"),
    ("/search", {"dataset": "x"}, {"Accept": "text/html"}, 406, "not_acceptable"),
    ("/datasets/x/rows", [1], {}, 400, "bad_rows"),
    ("/datasets/x/rows", [{"id": 1}], {}, 400, "no_vector_column"),
    ("/rows", {"search": {"dataset": "x", "vector": [1]}}, {}, 400, "bad_ticket"),
    ("/sql", {"sql": "SELEC 1"}, {}, 400, "bad_sql"),
    ("/sql", {"sql": "SELECT 1 / 0"}, {}, 400, "division_by_zero"),
    ("/sql", {"query": "SELECT 1"}, {}, 400, "unknown_key"),
    ("/actions/nothing", {}, {}, 501, "unknown_action"),
    ("/delete", {"dataset": "nowhere", "id": 1}, {}, 404, "dataset_not_found"),
]


@pytest.mark.parametrize("path, body, headers, status, code", REFUSED)
def test_the_gateway_refuses_in_words(curl, path, body, headers, status, code) -> None:
    got, answer = curl.json(path, body, **headers)
    assert (got, answer["code"]) == (status, code)
    assert answer["message"]
