"""Many queries over one stream."""

import itertools
import threading

import numpy as np
import pytest
from double import Double

import longbow
from longbow.join import BATCH_QUERIES, Join

RANDOM = np.random.default_rng(3)
MATRIX = RANDOM.normal(size=(600, 8)).astype("f4")


@pytest.fixture(scope="module")
def points(client) -> str:
    client.insert("join_points", MATRIX)
    return "join_points"


def test_each_row_finds_itself(client, points) -> None:
    found = client.search_many(points, MATRIX, k=2)
    assert found.column_names[:4] == ["query_index", "id", "score", "distance"]
    assert found.num_rows == 1200
    best = found.to_pandas().groupby("query_index").first()
    # Positions count over the whole join, not within one message.
    assert len(MATRIX) > BATCH_QUERIES
    assert best.index.tolist() == list(range(600))
    assert best["id"].tolist() == list(range(600))


def test_answers_are_those_of_search(client, points) -> None:
    joined = client.search_many(points, MATRIX[:5], k=3, ef=100).to_pandas()
    for n in range(5):
        alone = client.search(points, MATRIX[n], k=3, ef=100)
        assert joined[joined.query_index == n]["id"].tolist() == alone["id"].to_pylist()


def test_one_query_has_a_query_index_too(client, points) -> None:
    assert client.search_many(points, MATRIX[:1], k=2)["query_index"].to_pylist() == [0, 0]


def test_queries_are_taken_as_answers_are_read(client, points) -> None:
    blocks = (MATRIX[:10] for _ in itertools.count())
    with client.knn_join(points, blocks, k=1) as answers:
        seen = set(
            itertools.chain.from_iterable(
                batch["query_index"].to_pylist() for batch in itertools.islice(answers, 50)
            )
        )
    assert len(seen) >= 50


def test_leaving_early_ends_the_call_and_its_thread(client, points) -> None:
    before = set(threading.enumerate())
    answers = client.knn_join(points, (MATRIX for _ in itertools.count()), k=1)
    assert next(answers).num_rows > 0
    answers.close()
    assert list(answers) == []
    assert set(threading.enumerate()) <= before


def test_a_fault_of_the_callers_own_arrives_as_it_is(client, points) -> None:
    def blocks():
        yield MATRIX[:3]
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        list(client.knn_join(points, blocks(), k=1))


REFUSED = [
    (MATRIX[:, :3], 1, "dimension_mismatch"),
    (MATRIX, 0, "bad_k"),
    (iter([]), 1, "missing_query"),
    (MATRIX[:0], 1, "missing_query"),
    (iter([MATRIX[:0]]), 1, "missing_query"),
    (MATRIX, 2.5, "bad_value"),
    (MATRIX, float("nan"), "not_finite"),
    (MATRIX, 2**40, "bad_k"),
    (MATRIX, True, "bad_value"),
    (None, 1, "missing_query"),
    (5, 1, "invalid_vector"),
    (MATRIX, None, "bad_value"),
    ([[1.0, 2.0], [3.0]], 1, "dimension_mismatch"),
]


@pytest.mark.parametrize("queries, k, code", REFUSED)
def test_bad_queries_are_refused(client, points, queries, k, code) -> None:
    with pytest.raises(longbow.InvalidArgument) as caught:
        client.search_many(points, queries, k=k)
    assert caught.value.code == code


def test_without_a_query_no_exchange_begins() -> None:
    with pytest.raises(longbow.InvalidArgument, match="missing_query"):
        Join(None, iter([]))


def test_a_refusal_in_the_middle_arrives() -> None:
    with Double() as server, longbow.LongbowClient(server.uri, server.uri) as client:
        server.error, server.error_after = longbow.errors.pa.ArrowInvalid("bad: third"), 3
        with pytest.raises(longbow.InvalidArgument, match="bad: third"):
            list(client.knn_join("d", (MATRIX for _ in range(100)), k=1))
