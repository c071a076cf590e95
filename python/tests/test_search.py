"""Searching the real server, checked against numpy."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import longbow

RANDOM = np.random.default_rng(7)
MATRIX = RANDOM.normal(size=(3000, 12)).astype("f4")
QUERIES = RANDOM.normal(size=(20, 12)).astype("f4")
YEARS = RANDOM.integers(1900, 2000, 3000)


def distances(metric: str, query: np.ndarray) -> np.ndarray:
    if metric == "euclidean":
        return np.linalg.norm(MATRIX - query, axis=1)
    products = MATRIX @ query
    if metric == "dot_product":
        return -products
    return 1 - products / np.linalg.norm(MATRIX, axis=1) / np.linalg.norm(query)


@pytest.fixture(scope="module", params=["euclidean", "cosine", "dot_product"])
def metric(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def points(client, metric) -> str:
    name = f"points_{metric}"
    client.insert(name, {"id": range(3000), "vector": MATRIX, "year": YEARS}, metric=metric)
    return name


@pytest.mark.parametrize("exact", [True, False])
def test_neighbours_are_those_of_numpy(client, points, metric, exact) -> None:
    client.wait_until_indexed(points)
    hits = 0
    for query in QUERIES:
        found = client.search(points, query, k=10, exact=exact or None, ef=200)
        truth = distances(metric, query)
        hits += len(set(found["id"].to_pylist()) & set(np.argsort(truth)[:10].tolist()))
        told = found["distance"].to_numpy()
        if metric != "dot_product":  # What "distance" is there, the contract leaves open.
            np.testing.assert_allclose(told, truth[found["id"].to_numpy()], rtol=1e-3, atol=1e-4)
        assert (np.diff(found["score"].to_numpy()) <= 0).all()
    assert hits == 200 if exact else hits >= 195


def test_scores_are_higher_for_the_better(client, points, metric) -> None:
    found = client.search(points, QUERIES[0], k=5)
    ids, scores = found["id"].to_numpy(), found["score"].to_numpy()
    truth = distances(metric, QUERIES[0])[ids]
    expected = {"euclidean": 1 / (1 + truth), "cosine": 1 - truth, "dot_product": -truth}[metric]
    np.testing.assert_allclose(scores, expected, rtol=1e-3, atol=1e-4)


def test_several_queries_are_told_apart(client, points) -> None:
    found = client.search(points, QUERIES, k=3)
    assert found.column_names == ["query_index", "id", "score", "distance"]
    assert found.schema.field("query_index").type == pa.int32()
    assert found["query_index"].to_pylist() == [n for n in range(20) for _ in range(3)]
    for n in (0, 19):
        alone = client.search(points, QUERIES[n], k=3)
        mine = found.filter(pa.compute.equal(found["query_index"], n))
        assert mine["id"].to_pylist() == alone["id"].to_pylist()


def test_a_matrix_of_one_query_has_a_query_index_too(client, points) -> None:
    assert client.search(points, QUERIES[:1], k=3)["query_index"].to_pylist() == [0, 0, 0]


FILTERS = [
    (("year", "=", 1950), YEARS == 1950),
    (("year", "eq", "1950"), YEARS == 1950),
    (("year", "!=", 1950), YEARS != 1950),
    (("year", ">", 1990), YEARS > 1990),
    (("year", "GTE", 1990), YEARS >= 1990),
    (("year", "<", 1905), YEARS < 1905),
    (("year", "<=", np.int64(1905)), YEARS <= 1905),
    (("id", "<", 3), np.arange(3000) < 3),
    ([("year", ">=", 1950), ("year", "<", 1952)], (YEARS >= 1950) & (YEARS < 1952)),
    (("year", ">", 3000), YEARS > 3000),
]


@pytest.mark.parametrize("filters, mask", FILTERS, ids=lambda value: str(value)[:40])
def test_filters_leave_exactly_the_rows_that_match(client, points, metric, filters, mask) -> None:
    found = client.search(points, QUERIES[0], k=10, filters=filters, ef=200)
    matching = np.flatnonzero(mask)
    order = matching[np.argsort(distances(metric, QUERIES[0])[matching])][:10]
    # No silent short answer: as many as match, and the best of them.
    assert found.num_rows == len(order)
    assert len(set(found["id"].to_pylist()) & set(order.tolist())) >= len(order) - 1
    assert set(found["id"].to_pylist()) <= set(matching.tolist())


def test_a_short_answer_says_why(client, points) -> None:
    found = client.search(points, QUERIES[0], k=10, filters=("id", "<", 3))
    info = longbow.query_info(found)
    assert (info.returned, info.asked) == (3, 10)
    assert info.short_because
    assert "short_because" in longbow.explain(found)
    full = longbow.query_info(client.search(points, QUERIES[0], k=10))
    assert (full.returned, full.asked, full.short_because) == (10, 10, None)
    assert full.strategy and full.elapsed_us is not None
    assert full.distance_computations >= 10


def test_max_distance_cuts_the_answer(client) -> None:
    client.insert("line", {"id": range(10), "vector": [[float(n)] for n in range(10)]})
    found = client.search("line", [0.0], k=10, max_distance=2.5)
    assert found["id"].to_pylist() == [0, 1, 2]


def test_columns_and_vectors_come_when_asked_for(client, books) -> None:
    plain = client.search(books, [0.1, 0.2, 0.3], k=4)
    assert plain.column_names == ["id", "score", "distance"]
    assert plain.schema.field("id").type == pa.string()
    assert {plain.schema.field(name).type for name in ("score", "distance")} == {pa.float32()}
    more = client.search(books, [0.1, 0.2, 0.3], columns=["year", "title"], include_vectors=True)
    assert more.column_names == ["id", "score", "distance", "year", "title", "vector"]
    frame = more.to_pandas()
    assert isinstance(frame, pd.DataFrame) and frame["title"][0] == "Dune"
    np.testing.assert_allclose(frame["vector"][0], [0.1, 0.2, 0.3], rtol=1e-6)


def test_fewer_rows_than_k_are_all_returned(client, books) -> None:
    found = client.search(books, [0.1, 0.2, 0.3], k=100)
    assert sorted(found["id"].to_pylist()) == ["b1", "b2", "b3", "b4"]


def test_a_row_is_found_as_soon_as_it_is_acknowledged(client, dataset) -> None:
    for n in range(200):
        client.insert(dataset, {"id": [n], "vector": [[float(n), 1.0]]})
        found = client.search(dataset, [float(n), 1.0], k=1)
        assert (found["id"].to_pylist(), found["distance"].to_pylist()) == ([n], [0.0])


def test_the_neighbours_of_a_row(client, points, metric) -> None:
    found = client.search_by_id(points, 5, k=10)
    assert found.column_names == ["id", "score"]
    assert found.num_rows == 10
    truth = np.argsort(distances(metric, MATRIX[5]))[:11].tolist()
    assert len(set(found["id"].to_pylist()) & set(truth)) >= 9


REFUSED = [
    (dict(vector=[1.0, 2.0]), longbow.InvalidArgument, "dimension_mismatch", "expected 3, got 2"),
    (dict(k=0), longbow.InvalidArgument, "bad_k", "0"),
    (dict(k=-5), longbow.InvalidArgument, "bad_k", "-5"),
    (dict(column="nope"), longbow.InvalidArgument, "column_not_found", "'nope'"),
    (dict(column="title"), longbow.InvalidArgument, "not_a_vector_column", "'title'"),
    (dict(columns=["nope"]), longbow.InvalidArgument, "column_not_found", "'nope'"),
    (dict(filters=("nope", "=", 1)), longbow.InvalidArgument, "column_not_found", "'nope'"),
    (dict(filters=("year", "~", 1)), longbow.InvalidArgument, "unknown_operator", "'~'"),
    (dict(filters=("year", "=", "x")), longbow.InvalidArgument, "filter_value", "x"),
    (dict(vector=[1.0, 2.0, 1e39]), longbow.InvalidArgument, None, ""),
    (dict(text_query="(words"), longbow.InvalidArgument, "bad_text_query", "text_query"),
    (dict(where="yeer > 1900"), longbow.InvalidArgument, "column_not_found", "year"),
]


@pytest.mark.parametrize("arguments, kind, code, words", REFUSED)
def test_what_cannot_be_answered_is_refused(client, books, arguments, kind, code, words) -> None:
    with pytest.raises(kind) as caught:
        client.search(books, **{"vector": [0.1, 0.2, 0.3], **arguments})
    assert code is None or caught.value.code == code
    assert words in caught.value.message
    assert "gRPC" not in str(caught.value)


def test_unknown_datasets_and_ids_are_not_found(client, books) -> None:
    for call in (
        lambda: client.search("nowhere", [1.0]),
        lambda: client.search_by_id("nowhere", 1),
        lambda: client.search_many("nowhere", [[1.0]]),
        lambda: client.search_by_id(books, "b9"),
    ):
        with pytest.raises(longbow.NotFound):
            call()


def test_text_is_not_a_list_of_columns(client, books) -> None:
    with pytest.raises(longbow.InvalidArgument, match="list of names"):
        client.search(books, [0.1, 0.2, 0.3], columns="title")
