"""Answers as numpy arrays are those of the table."""

import numpy as np
import pyarrow as pa
import pytest

import longbow

MATRIX = np.random.default_rng(17).normal(size=(300, 8)).astype("f4")


@pytest.fixture(scope="module")
def points(client) -> str:
    client.insert("numpy_points", MATRIX)
    return "numpy_points"


@pytest.mark.parametrize("exact", [None, True])
def test_the_arrays_hold_what_the_table_holds(client, points, exact) -> None:
    table = client.search(points, MATRIX[3], k=5, ef=100, exact=exact)
    ids, distances = client.search_numpy(points, MATRIX[3], k=5, ef=100, exact=exact)
    assert (ids.dtype, distances.dtype) == ("int64", "float32")
    assert ids.tolist() == table["id"].to_pylist()
    assert distances.tolist() == table["distance"].to_pylist()


def test_several_queries_give_a_row_each(client, points) -> None:
    ids, distances = client.search_numpy(points, MATRIX, k=3, column="vector")
    assert ids.shape == distances.shape == (300, 3)
    assert ids[:, 0].tolist() == list(range(300))
    again, _ = client.search_numpy(points, MATRIX, k=3)
    np.testing.assert_array_equal(ids, again)
    one, _ = client.search_numpy(points, MATRIX[:1], k=3)
    assert one.shape == (1, 3)


@pytest.mark.parametrize(
    "asked",
    [
        {"filters": ("id", "<", 40)},
        {"filters": [("id", ">=", 100), {"field": "id", "op": "<", "value": 103}]},
        {"where": "id % 50 = 7"},
        {"filters": ("id", ">", 200), "where": "id < 260", "exact": True},
        {"where": "id < 0"},
    ],
)
def test_filters_hold_for_arrays_too(client, points, asked) -> None:
    table = client.search(points, MATRIX[3], k=5, **asked)
    ids, distances = client.search_numpy(points, MATRIX[3], k=5, **asked)
    assert ids.tolist() == table["id"].to_pylist()
    assert distances.tolist() == table["distance"].to_pylist()
    several, _ = client.search_numpy(points, MATRIX[3:5], k=5, **asked)
    assert several.shape == (2, 5)
    assert several[0, : len(ids)].tolist() == ids.tolist()
    assert (several[0, len(ids) :] == -1).all()


KINDS = [
    ([7, 8], "int64", -1),
    (np.array([7, 2**63 + 1], "u8"), "uint64", 2**64 - 1),
    (np.array([7, 8], "u1"), "int64", -1),
    (["a", "b"], "object", None),
]


@pytest.mark.parametrize("ids, kind, nothing", KINDS)
def test_places_without_a_row_are_told(client, dataset, ids, kind, nothing) -> None:
    client.insert(dataset, MATRIX[:2], ids=ids)
    found, distances = client.search_numpy(dataset, MATRIX[:2], k=3)
    assert found.dtype == kind
    first, second = np.asarray(ids).tolist()
    assert found.tolist() == [[first, second, nothing], [second, first, nothing]]
    assert np.isinf(distances[:, 2]).all() and np.isfinite(distances[:, :2]).all()
    alone, distances = client.search_numpy(dataset, MATRIX[0], k=3)
    assert alone.tolist() == [first, second] and len(distances) == 2


EMPTY = [MATRIX[:0], MATRIX[:0].astype("f8"), pa.array([], pa.list_(pa.float32(), 8))]


@pytest.mark.parametrize("queries", EMPTY, ids=lambda queries: str(type(queries)))
def test_no_queries_are_refused_alike_by_every_call(client, points, queries) -> None:
    calls = [
        lambda: client.search(points, queries),
        lambda: client.search(points, queries, text_query="word"),
        lambda: client.search_numpy(points, queries),
        lambda: client.search_numpy(points, queries, exact=True),
        lambda: client.search_numpy(points, queries, where="id < 9"),
        lambda: client.search_many(points, queries),
        lambda: client.knn_join(points, queries).read_all(),
        lambda: client.knn_join(points, iter([queries, queries])).read_all(),
    ]
    for call in calls:
        with pytest.raises(longbow.InvalidArgument, match="no vectors to search for") as caught:
            call()
        assert caught.value.code == "missing_query"


def test_an_empty_block_among_others_changes_nothing(client, points) -> None:
    blocks = [MATRIX[:0], MATRIX[:2], MATRIX[:0], MATRIX[2:3]]
    found = client.search_many(points, iter(blocks), k=1)
    assert found["query_index"].to_pylist() == found["id"].to_pylist() == [0, 1, 2]


def test_what_is_wrong_is_refused(client, points) -> None:
    for vectors, k, code in [
        (MATRIX[0, :3], 1, "dimension_mismatch"),
        (MATRIX[:, :3], 1, "dimension_mismatch"),
        (MATRIX[0], 0, "bad_k"),
        (MATRIX[0], -1, "bad_k"),
        (np.full(8, np.nan, "f4"), 1, "not_finite"),
    ]:
        with pytest.raises(longbow.InvalidArgument) as caught:
            client.search_numpy(points, vectors, k)
        assert caught.value.code == code
    for k, code in [
        (None, "bad_value"),
        (2.0, "bad_value"),
        (2.5, "bad_value"),
        (np.True_, "bad_value"),
        (True, "bad_value"),
        (2**40, "bad_k"),
        (float("nan"), "not_finite"),
    ]:
        for vectors in (MATRIX[0], MATRIX[:2]):
            with pytest.raises(longbow.InvalidArgument, match="k is") as caught:
                client.search_numpy(points, vectors, k)
            assert caught.value.code == code
            with pytest.raises(longbow.InvalidArgument) as by_table:
                client.search(points, vectors, k)
            if k != 2**40:  # Of what is a whole number, the engine tells.
                assert str(by_table.value) == str(caught.value)
    for ef in (2.5, True, "9", float("nan")):
        with pytest.raises(longbow.InvalidArgument, match="ef is") as caught:
            client.search_numpy(points, MATRIX[0], ef=ef)
        with pytest.raises(longbow.InvalidArgument) as by_table:
            client.search(points, MATRIX[0], ef=ef)
        assert str(by_table.value) == str(caught.value)
    assert client.search(points, MATRIX[0], np.int64(2), ef=np.uint8(9)).num_rows == 2
    with pytest.raises(longbow.InvalidArgument, match="missing_query"):
        client.search_numpy(points, None)
    for ef in (0, -1):
        with pytest.raises(longbow.InvalidArgument, match="bad_value.*ef"):
            client.search_numpy(points, MATRIX[0], ef=ef)
    with pytest.raises(longbow.NotFound):
        client.search_numpy("nowhere", MATRIX[0])
