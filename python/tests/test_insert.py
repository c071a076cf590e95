"""Inserting into the real server: every kind of data, every type, and what is refused."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from test_source import ROWS, SOURCES, dask_frame

import longbow
from longbow.vectors import ELEMENTS

MATRIX = np.arange(8, dtype="f4").reshape(4, 2)


def by_id(table: pa.Table) -> list:
    return table.sort_by("id").to_pylist()


def test_dask_arrives_partition_by_partition(client, dataset) -> None:
    with dask_frame() as frame:
        result = client.insert(dataset, frame)
    assert (result.rows, result.batches) == (3, 2)
    assert by_id(client.download_arrow(dataset)) == ROWS


@pytest.mark.parametrize("kind", [k for k in SOURCES if "generator" not in k])
def test_every_kind_arrives_as_the_same_rows(client, dataset, kind) -> None:
    data = SOURCES[kind][0]
    if kind in ("reader", "batches", "frames"):  # These are spent by one reading.
        data = pa.Table.from_pylist(ROWS).to_batches(max_chunksize=1)
    result = client.insert(dataset, data)
    assert (result.rows, result.searchable) == (3, True)
    assert by_id(client.download_arrow(dataset)) == ROWS


@pytest.mark.parametrize("name", sorted(ELEMENTS))
def test_every_element_type_is_stored_as_it_is_and_found(client, dataset, name) -> None:
    client.insert(dataset, MATRIX.astype(name))
    stored = client.download_arrow(dataset)
    assert stored.schema.field("vector").type == pa.list_(ELEMENTS[name], 2)
    assert [row["vector"] for row in by_id(stored)] == MATRIX.tolist()
    found = client.search(dataset, [4, 5], k=1, include_vectors=True)
    assert found["id"].to_pylist() == [2]
    assert found.schema.field("vector").type == pa.list_(ELEMENTS[name], 2)


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_complex_vectors_are_stored_and_found(client, dataset, name) -> None:
    vectors = np.array([[1 + 1j, 2], [3j, 4 - 1j]], name)
    client.insert(dataset, vectors)
    schema = client.get_info(dataset).schema
    assert schema.metadata[b"longbow.complex"] == b"true"
    assert schema.metadata[b"longbow.vector_type"] == name.encode()
    found = client.search(dataset, vectors[1], k=1)
    assert (found["id"].to_pylist(), found["distance"].to_pylist()) == ([1], [0.0])


@pytest.mark.parametrize("metric, best", [("euclidean", 0), ("cosine", 2), ("dot_product", 1)])
def test_the_metric_decides_who_is_nearest(client, dataset, metric, best) -> None:
    vectors = np.array([[1.1, 1.0], [50.0, 0.0], [3.0, 3.0]], "f4")
    client.insert(dataset, vectors, metric=metric)
    assert client.search(dataset, [1.0, 1.0], k=1)["id"].to_pylist() == [best]


def test_a_row_of_a_known_id_is_replaced(client, dataset) -> None:
    client.insert(dataset, MATRIX)
    client.insert(dataset, MATRIX[:1] + 100, ids=[2])
    assert client.get_info(dataset).rows == 4
    assert client.get(dataset, 2)["vector"] == [100.0, 101.0]
    assert client.search(dataset, [4, 5], k=1)["distance"][0].as_py() > 0
    assert client.search(dataset, [100, 101], k=1)["id"].to_pylist() == [2]


def test_rows_repeated_in_one_insert_leave_the_last(client, dataset) -> None:
    result = client.insert(dataset, MATRIX, ids=[7, 8, 7, 7])
    assert result.rows == 4
    rows = by_id(client.download_arrow(dataset))
    assert rows == [{"id": 7, "vector": [6.0, 7.0]}, {"id": 8, "vector": [2.0, 3.0]}]


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"])
def test_ids_of_every_integer_type(client, dataset, kind) -> None:
    ids = np.array([3, np.iinfo(kind).max], kind)
    client.insert(dataset, MATRIX[:2], ids=ids)
    assert client.get(dataset, int(ids[1]))["vector"] == [2.0, 3.0]
    assert client.search(dataset, [2, 3], k=1)["id"].type == pa.from_numpy_dtype(kind)
    client.delete(dataset, int(ids[1]))
    assert client.download_arrow(dataset)["id"].to_pylist() == [3]


def test_text_ids_of_any_kind(client, dataset) -> None:
    ids = ["", "a", "ü" * 100, "with 'quotes' and \\"]
    client.insert(dataset, MATRIX, ids=ids)
    for n, one in enumerate(ids):
        assert client.get(dataset, one)["vector"] == MATRIX[n].tolist()


def test_columns_of_many_types_come_back_as_they_were(client, dataset) -> None:
    table = pa.table(
        {
            "id": pa.array([1, 2]),
            "vector": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2)),
            "flag": pa.array([True, None]),
            "small": pa.array([1, None], pa.int8()),
            "ratio": pa.array([0.5, None], pa.float64()),
            "timestamp": pa.array([1, None], pa.timestamp("us", "UTC")),
            "day": pa.array([1, None], pa.date32()),
            "price": pa.array([None, None], pa.decimal128(10, 2)),
            "raw": pa.array([b"\0\xff", None]),
            "tags": pa.array([["a", None], None], pa.list_(pa.string())),
            "nested": pa.array([{"x": 1, "y": "z"}, None]),
        }
    )
    client.insert(dataset, table)
    assert by_id(client.download_arrow(dataset)) == table.to_pylist()
    found = client.search(dataset, [3, 4], k=2, columns=table.column_names[2:])
    assert found.select(table.column_names[2:]).to_pylist() == [
        {name: row[name] for name in table.column_names[2:]} for row in by_id(table)[::-1]
    ]


def test_pandas_categories_and_dates(client, dataset) -> None:
    frame = pd.DataFrame(
        {
            "id": [1, 2],
            "vector": list(MATRIX[:2]),
            "kind": pd.Categorical(["x", "y"]),
            "when": pd.to_datetime(["2020-01-01", "2021-01-01"]),
        }
    )
    client.insert(dataset, frame)
    back = client.download_arrow(dataset).to_pandas()
    assert back["kind"].tolist() == ["x", "y"]
    assert back["when"].tolist() == frame["when"].tolist()


def test_polars_arrays_and_categories(client, dataset) -> None:
    frame = pl.DataFrame({"id": [1, 2], "kind": ["x", "y"]}).with_columns(
        pl.Series("vector", MATRIX[:2], dtype=pl.Array(pl.Float32, 2)),
        pl.col("kind").cast(pl.Categorical),
    )
    client.insert(dataset, frame)
    assert client.download_arrow(dataset)["kind"].to_pylist() == ["x", "y"]


def test_several_vector_columns_are_searched_by_name(client, dataset) -> None:
    data = {"id": [1, 2], "photo": MATRIX[:2], "text": MATRIX[:2][::-1]}
    client.insert(dataset, data, vector=["photo", "text"])
    assert client.search(dataset, [0, 1], k=1, column="photo")["id"].to_pylist() == [1]
    assert client.search(dataset, [0, 1], k=1, column="text")["id"].to_pylist() == [2]


def test_a_column_may_be_added_later_and_is_null_before(client, dataset) -> None:
    client.insert(dataset, {"id": [1], "vector": MATRIX[:1]})
    client.insert(dataset, {"id": [2], "vector": MATRIX[1:2], "note": ["new"]})
    rows = by_id(client.download_arrow(dataset))
    assert [row["note"] for row in rows] == [None, "new"]


def test_an_empty_table_creates_the_dataset(client, dataset) -> None:
    empty = pa.table(
        {"id": pa.array([], pa.int64()), "vector": pa.array([], pa.list_(pa.float32(), 2))}
    )
    result = client.insert(dataset, empty)
    assert (result.rows, result.batches, result.offset) == (0, 0, None)
    assert client.get_info(dataset).rows == 0
    assert client.search(dataset, [1, 2]).num_rows == 0


def test_lists_of_numbers_are_no_vectors_where_others_are(client, dataset) -> None:
    data = {"id": [1, 2], "vector": MATRIX[:2], "sizes": [[1, 2, 3], [4]]}
    client.insert(dataset, data)
    client.insert(dataset, pd.DataFrame({**data, "vector": list(MATRIX[:2])}))
    assert client.get(dataset, 1)["sizes"] == [1, 2, 3]


def test_batches_of_any_size_arrive_whole(client, dataset) -> None:
    matrix = np.random.default_rng(1).random((2000, 16), dtype="f4")
    for size in (7, 500, None):
        result = client.insert(dataset, matrix, batch_size=size, routing_key="a-key")
        assert result.rows == 2000
        assert result.batches == (1 if size is None else -(-2000 // size))
    assert client.download_arrow(dataset).sort_by("id")["vector"].to_pylist() == matrix.tolist()


REFUSED = [
    ({"id": [1], "vector": np.ones((1, 3), "f4")}, "schema_changed", "expected"),
    ({"id": ["x"], "vector": MATRIX[:1]}, "schema_changed", "'id'"),
    ({"id": [1], "vector": [[1.0, float("nan")]]}, "not_finite", "row 0"),
    ({"id": [1], "other": MATRIX[:1]}, "column_missing", "'vector'"),
]


@pytest.mark.parametrize("data, code, words", REFUSED)
def test_what_does_not_fit_the_dataset_is_refused(client, dataset, data, code, words) -> None:
    client.insert(dataset, MATRIX)
    with pytest.raises(longbow.InvalidArgument) as caught:
        client.insert(dataset, data)
    assert caught.value.code == code
    assert words in caught.value.message
    assert client.get_info(dataset).rows == 4


def test_a_column_of_nulls_gets_its_type_from_its_first_value(client, dataset) -> None:
    client.insert(dataset, {"id": [1], "vector": MATRIX[:1], "note": [None]})
    assert client.download_arrow(dataset).column_names == ["id", "vector"]
    client.insert(dataset, {"id": [2], "vector": MATRIX[1:2], "note": ["new"]})
    client.insert(dataset, {"id": [3], "vector": MATRIX[2:3], "note": [None]})
    rows = by_id(client.download_arrow(dataset))
    assert [row["note"] for row in rows] == [None, "new", None]


NOTHING = [[None, None], np.array([None, None]), pd.Series([None, None]), pl.Series([None, None])]


@pytest.mark.parametrize("nulls", [*NOTHING, pa.nulls(2)], ids=lambda nulls: str(type(nulls)))
def test_a_column_of_nulls_that_is_left_out_is_told(client, dataset, nulls) -> None:
    data = {"id": [1, 2], "vector": MATRIX[:2], "note": nulls}
    assert client.insert(dataset, data).left_out == ("note",)
    client.insert(dataset, {"id": [3], "vector": MATRIX[:1], "note": ["new"]})
    assert client.insert(dataset, data).left_out == ()
    assert client.insert(dataset, {**data, "other": nulls}).left_out == ("other",)
    rows = by_id(client.download_arrow(dataset))
    assert [row["note"] for row in rows] == [None, None, "new"]


def test_a_value_that_comes_after_nulls_alone_is_read(client, dataset) -> None:
    parts = [
        {"id": [n], "vector": MATRIX[:1], "note": [note]} for n, note in [(1, None), (2, "new")]
    ]
    with pytest.raises(longbow.InvalidArgument, match="no value of 'note' to tell its type"):
        client.insert(dataset, iter(parts))
    client.insert(dataset, parts[1])
    client.insert(dataset, iter(parts))
    assert [row["note"] for row in by_id(client.download_arrow(dataset))] == [None, "new"]


def test_a_column_of_nulls_with_a_mistyped_name_is_refused(client, dataset) -> None:
    client.insert(dataset, MATRIX)
    data = {"id": [1], "vector": MATRIX[:1], "titel": [None]}
    with pytest.raises(longbow.InvalidArgument, match="no column 'titel'") as caught:
        client.insert(dataset, data, add_columns=False)
    assert caught.value.code == "column_not_found"


WRONG = {
    "a masked id": ({"id": np.ma.array([1, 2], mask=[0, 1]), "vector": MATRIX[:2]}, "missing_id"),
    "a masked vector": (np.ma.array(MATRIX, mask=MATRIX == 3), "invalid_vector"),
    "a number of 128 bits": (
        pl.DataFrame({"id": [1], "vector": [[0.0, 1.0]]}).with_columns(x=pl.lit(1, pl.Int128)),
        "invalid_data",
    ),
    "a boolean among ids": ({"id": [1, np.True_], "vector": MATRIX[:2]}, "invalid_data"),
    "a boolean among numbers": (
        {"id": [1, 2], "vector": MATRIX[:2], "x": [1.0, True]},
        "invalid_data",
    ),
    "no ids in a matrix": ({"id": np.empty((0, 2)), "vector": MATRIX[:0]}, "invalid_ids"),
    "a text among ids": ([{"id": n, "vector": [1, 2]} for n in (1, "x")], "invalid_data"),
    "half an id": ({"id": [1, 2.5], "vector": MATRIX[:2]}, "invalid_ids"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_refused_by_the_client_changes_nothing(client, dataset, what) -> None:
    data, code = WRONG[what]
    client.insert(dataset, MATRIX)
    before = by_id(client.download_arrow(dataset))
    for name in (dataset, f"{dataset}_other"):
        with pytest.raises(longbow.InvalidArgument) as caught:
            client.insert(name, data)
        assert caught.value.code == code
    assert by_id(client.download_arrow(dataset)) == before
    assert f"{dataset}_other" not in [info.name for info in client.list_datasets()]


@pytest.mark.parametrize("size", [0, np.int64(0), 2.5, float("nan"), "9", True, np.True_], ids=repr)
def test_a_batch_size_that_is_none_is_refused(client, dataset, size) -> None:
    with pytest.raises(longbow.InvalidArgument, match="batch_size is") as caught:
        client.insert(dataset, MATRIX, batch_size=size)
    assert caught.value.code == "invalid_batch_size"
    assert f"of type {type(size).__name__}; give a whole number" in caught.value.message


@pytest.mark.parametrize("size", [np.int64(2), np.uint8(2), pa.scalar(2)], ids=repr)
def test_a_batch_size_may_be_numpys_or_arrows(client, dataset, size) -> None:
    assert client.insert(dataset, MATRIX, batch_size=size).rows == len(MATRIX)


def test_columns_of_one_name_are_refused(client, dataset) -> None:
    vector = pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2))
    table = pa.Table.from_arrays([pa.array([1]), vector, pa.array([2])], ["id", "vector", "id"])
    frame = pd.DataFrame([[1, [1.0, 2.0], 10, 20]], columns=["id", "vector", "a", "a"])
    for data, name in ((table, "'id'"), (frame, "'a'"), ({"id": [1], 1: [2], "1": [3]}, "'1'")):
        with pytest.raises(longbow.InvalidArgument) as caught:
            client.insert(dataset, data)
        assert caught.value.code == "duplicate_column"
        assert f"column {name} comes 2 times" in caught.value.message


def test_a_refused_insert_says_what_of_it_is_written(client, dataset) -> None:
    check_refused_half_way(client, dataset)


def test_the_engine_in_this_process_says_what_of_a_refused_insert_is_written() -> None:
    with longbow.open() as database:
        check_refused_half_way(database, "d")


def check_refused_half_way(client, dataset) -> None:
    matrix = np.ones((300, 2), "f4")
    matrix[270, 1] = float("nan")
    with pytest.raises(longbow.InvalidArgument) as caught:
        client.insert(dataset, matrix, batch_size=100)
    assert caught.value.code == "not_finite"
    # The row of the batch, and where that begins.
    assert "row 70 " in caught.value.message
    # Fewer where the refusal met a write, which loses acknowledgements in pyarrow.
    told = "(at least the first [12]00|the first 200) rows of this insert are written"
    assert re.search(told, caught.value.message), caught.value.message
    assert client.get_info(dataset).rows == 200


def test_the_metric_can_not_be_changed(client, dataset) -> None:
    client.insert(dataset, MATRIX, metric="cosine")
    client.insert(dataset, MATRIX)
    with pytest.raises(longbow.InvalidArgument, match="metric_changed"):
        client.insert(dataset, MATRIX, metric="euclidean")
    with pytest.raises(longbow.InvalidArgument, match="unknown_metric"):
        client.insert(f"{dataset}_other", MATRIX, metric="manhattan")


LONG = np.random.default_rng(1).normal(size=(600, 128)).astype("f4")


def index_of(client, dataset: str) -> dict:
    """What is said of the dataset's only index."""
    client.wait_until_indexed(dataset)
    (index,) = client._backend.call("check_readiness", {"dataset": dataset})["indexes"]
    return index


@pytest.mark.parametrize(
    "said, expected", [(None, "rabitq"), ("rabitq", "rabitq"), ("sq8", "sq8"), ("none", "none")]
)
def test_long_vectors_are_quantized_unless_told_otherwise(client, dataset, said, expected) -> None:
    client.insert(dataset, LONG, quantization=said)
    index = index_of(client, dataset)
    assert (index["column"], index["quantization"], index["rows"]) == ("vector", expected, 600)
    assert index["bytes_per_row"] == index["bytes"] // 600 > 128
    for row in (0, 99, 599):
        hits = client.search(dataset, LONG[row], k=3)
        assert (hits["id"][0].as_py(), hits["distance"][0].as_py()) == (row, 0.0)
        exact = client.search(dataset, LONG[row], k=600, exact=True)
        distances = dict(zip(exact["id"].to_pylist(), exact["distance"].to_pylist(), strict=True))
        assert [distances[id] for id in hits["id"].to_pylist()] == hits["distance"].to_pylist()


def test_the_quantization_can_not_be_changed(client, dataset) -> None:
    client.insert(dataset, LONG, quantization="none")
    with pytest.raises(longbow.InvalidArgument, match="quantization_changed"):
        client.insert(dataset, LONG, quantization="rabitq")
    client.insert(dataset, LONG)
    assert index_of(client, dataset)["quantization"] == "none"


RUNNERS = [{"id": 1, "vector": [1.0, 0.0], "t": "he runs", "u": "he runs"}]


def test_how_words_are_read_is_said_by_column(client, dataset) -> None:
    client.insert(dataset, RUNNERS, text={"t": "en", "u": "none"})
    found = client.search(dataset, text_query="running")
    assert found["id"].to_pylist() == [1]
    with pytest.raises(longbow.InvalidArgument, match="not_a_text_column"):
        client.search(dataset, text_query="runs", text_columns=["u"])
    # What was said once holds.
    client.insert(dataset, [{**RUNNERS[0], "id": 2, "t": "she ran, running late"}])
    assert client.search(dataset, text_query="run").num_rows == 2
    with pytest.raises(longbow.InvalidArgument, match="text_changed"):
        client.insert(dataset, RUNNERS, text={"t": "de"})
    with pytest.raises(longbow.InvalidArgument, match="unknown_column.*'words'"):
        client.insert(dataset, RUNNERS, text={"words": "en"})


def test_what_fields_say_is_sent(client, dataset) -> None:
    table = pa.Table.from_pylist(RUNNERS)
    fields = [
        field.with_metadata({"longbow.text": "en", "other": "x"}) if field.name == "t" else field
        for field in table.schema
    ]
    client.insert(dataset, table.cast(pa.schema(fields)))
    assert client.search(dataset, text_query="running", text_columns=["t"]).num_rows == 1
    assert client.search(dataset, text_query="running", text_columns=["u"]).num_rows == 0
