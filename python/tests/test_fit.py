"""Columns of other types than the dataset's: cast where nothing is lost, else refused."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import longbow

VECTORS = np.arange(6, dtype="f4").reshape(3, 2)
DAY = datetime.datetime(2024, 2, 29)
FIRST = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.ravel()), 2),
        "year": pa.array([1990, 2000, 2010], pa.int64()),
        "price": pa.array([1.5, 2.5, 3.5], pa.float32()),
        "title": pa.array(["a", "b", "c"]),
        "at": pa.array([DAY] * 3, pa.timestamp("us")),
        "tags": pa.array([["x"], [], None], pa.list_(pa.string())),
        "fee": pa.array([Decimal("1.25")] * 3),
    }
)


@pytest.fixture
def shelf(client, dataset) -> str:
    client.insert(dataset, FIRST)
    return dataset


def types(client, dataset) -> list[pa.DataType]:
    return client.get_info(dataset).schema.types


def test_types_of_the_same_kind_become_those_of_the_dataset(client, shelf) -> None:
    given = pa.table(
        {
            "id": pa.array([4], pa.int32()),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array([7.0, 8.0], pa.float64()), 2),
            "year": pa.array([2020.0], pa.float64()),
            "price": pa.array([4], pa.int8()),
            "title": pa.array(["d"], pa.large_string()),
            "at": pa.array([DAY.date()], pa.date32()),
            "tags": pa.array([["y"]], pa.large_list(pa.large_string())),
            "fee": pa.array([Decimal("0.5")]),
        }
    )
    assert client.insert(shelf, given).rows == 1
    assert types(client, shelf) == FIRST.schema.types
    stored = client.get(shelf, 4)
    assert [stored[name] for name in FIRST.column_names] == [
        4,
        [7.0, 8.0],
        2020,
        4.0,
        "d",
        DAY,
        ["y"],
        Decimal("0.50"),
    ]


def test_frames_of_pandas_fit_whatever_pandas_made_of_them(client, dataset) -> None:
    client.insert(
        dataset, pd.DataFrame({"id": [1, 2], "vector": list(VECTORS[:2]), "year": [1, 2]})
    )
    # A gap makes floats of whole numbers; numpy makes vectors of float64.
    gap = pd.DataFrame({"id": [3, 4], "vector": [np.ones(2), np.zeros(2)], "year": [3, None]})
    client.insert(dataset, gap)
    client.insert(dataset, np.full((1, 2), 0.5), ids=np.array([5], "u1"))
    stored = client.download_arrow(dataset).sort_by("id")
    assert stored["year"].to_pylist() == [1, 2, 3, None, None]
    assert stored["vector"].to_pylist()[2:] == [[1, 1], [0, 0], [0.5, 0.5]]


WRONG = {
    "a half as a whole number": ("year", pa.array([1, 2, 2.5, 4])),
    "a number beyond the type": ("year", pa.array([1, 2, 2**63, 4], pa.uint64())),
    "a fraction of a float's last digit": ("price", pa.array([1, 2, 2**24 + 1, 4])),
    "a float beyond the type": ("price", pa.array([1.0, float("inf"), 1e300, 4.0])),
    "a decimal with more digits": (
        "fee",
        pa.array([Decimal("1.0"), Decimal("2.0"), Decimal("2.125"), None]),
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_value_without_its_equal_is_refused_with_its_row(client, shelf, what) -> None:
    name, column = WRONG[what]
    rows = {"id": range(10, 14), "vector": np.ones((4, 2), "f4"), name: column}
    with pytest.raises(longbow.InvalidArgument, match=f"'{name}'.*row 2") as refused:
        client.insert(shelf, rows)
    assert refused.value.code == "value_does_not_fit"
    assert client.get_info(shelf).rows == 3


@pytest.mark.parametrize(
    "name, column",
    [
        ("year", ["1990"]),
        ("title", [7]),
        ("at", pa.array([DAY], pa.timestamp("us", "UTC"))),
        ("year", [True]),
        ("tags", [[1]]),
        ("vector", np.ones((1, 3))),
    ],
)
def test_another_kind_is_refused_as_ever(client, shelf, name, column) -> None:
    rows = {"id": [9], "vector": np.ones((1, 2), "f4"), name: column}
    with pytest.raises(longbow.InvalidArgument) as refused:
        client.insert(shelf, rows)
    assert refused.value.code == "schema_changed"


def test_a_type_that_was_asked_for_is_not_changed(client, shelf) -> None:
    with pytest.raises(longbow.InvalidArgument) as refused:
        client.insert(shelf, np.ones((1, 2)), ids=[9], dtype="float16")
    assert refused.value.code == "schema_changed"


def test_lists_of_numbers_are_read_as_the_dataset_has_them(client, dataset) -> None:
    client.insert(dataset, np.ones((1, 2)), ids=[1])
    client.insert(dataset, [{"id": 2, "vector": [0.1, 2**24 + 1]}])
    assert client.get(dataset, 2)["vector"] == [0.1, 2**24 + 1]


def test_numbers_that_a_half_has_no_room_for_are_refused(client, dataset) -> None:
    client.insert(dataset, np.ones((1, 2), "f2"), ids=[1])
    with pytest.raises(longbow.InvalidArgument, match="row 1") as refused:
        client.insert(dataset, np.array([[1, 2], [2049, 4]]), ids=[2, 3])
    assert refused.value.code == "value_does_not_fit"
    client.insert(dataset, np.array([[1, 2], [2048, 4]]), ids=[2, 3])


def test_categories_and_columns_without_values_fit(client, shelf) -> None:
    vectors = {"vector": list(VECTORS[:1])}
    client.insert(shelf, pd.DataFrame({"id": [7], "title": pd.Categorical(["a"]), **vectors}))
    client.insert(shelf, {"id": [8], "vector": VECTORS[:1], "tags": [[]], "title": [None]})
    assert [client.get(shelf, id)["title"] for id in (7, 8)] == ["a", None]
    assert client.get(shelf, 8)["tags"] == []


def test_what_was_seen_of_a_dataset_that_is_gone_changes_nothing(client, shelf) -> None:
    client.insert(shelf, VECTORS.astype("f8"), ids=[7, 8, 9])
    client._backend.call("delete-dataset", {"dataset": shelf})
    client.insert(shelf, VECTORS.astype("f8"))
    assert client.get_info(shelf).schema.field("vector").type.value_type == pa.float64()


def test_columns_that_came_since_are_known(client, shelf) -> None:
    rows = {"id": [7], "vector": VECTORS[:1], "pages": [3]}
    client.insert(shelf, rows)
    client.insert(shelf, {**rows, "pages": pa.array([4.0])})
    assert client.get(shelf, 7)["pages"] == 4


def test_a_dataset_that_was_made_anew_is_asked_for_anew(client, shelf) -> None:
    client.insert(shelf, VECTORS, ids=[7, 8, 9])
    client.delete_dataset(shelf)
    client.insert(shelf, VECTORS.astype("f8"))
    assert client.get_info(shelf).schema.field("vector").type.value_type == pa.float64()


def test_columns_are_added_unless_that_is_not_wanted(client, shelf) -> None:
    rows = {"id": [4], "vector": VECTORS[:1], "titel": ["d"]}
    with pytest.raises(longbow.InvalidArgument, match="did you mean 'title'") as refused:
        client.insert(shelf, rows, add_columns=False)
    assert refused.value.code == "column_not_found"
    assert client.get_info(shelf).schema.names == FIRST.column_names
    client.insert(shelf, {"id": [4], "vector": VECTORS[:1], "title": ["d"]}, add_columns=False)
    client.insert(shelf, rows)
    assert client.get_info(shelf).schema.names == [*FIRST.column_names, "titel"]
