"""Downloading: columns, limits, filters, streams."""

import numpy as np
import pyarrow as pa
import pytest

import longbow

ROWS = 10_000


@pytest.fixture(scope="module")
def numbers(client) -> str:
    columns = {
        "id": range(ROWS),
        "vector": np.arange(ROWS * 2, dtype="f4").reshape(ROWS, 2),
        "mod": np.arange(ROWS) % 10,
    }
    client.insert("numbers", columns, batch_size=1000)
    return "numbers"


def test_the_whole_dataset_comes_as_it_went_in(client, numbers) -> None:
    table = client.download_arrow(numbers)
    assert table.column_names == ["id", "vector", "mod"]
    assert table.schema.field("vector").type == pa.list_(pa.float32(), 2)
    assert table["id"].to_pylist() == list(range(ROWS))
    flat = pa.concat_arrays([c.flatten() for c in table["vector"].chunks])
    assert flat.to_pylist() == list(range(ROWS * 2))


SLICES = [(None, 5), (0, 0), (3, 5), (10, None), (10, ROWS - 5), (5, ROWS), (1500, 700)]


@pytest.mark.parametrize("limit, offset", SLICES)
def test_limit_and_offset(client, numbers, limit, offset) -> None:
    start = offset or 0
    end = ROWS if limit is None else min(ROWS, start + limit)
    table = client.download_arrow(numbers, limit=limit, offset=offset)
    assert table["id"].to_pylist() == list(range(start, end))
    assert table.column_names == ["id", "vector", "mod"]


@pytest.mark.parametrize("columns", [["mod"], ["mod", "id"], ["vector"]])
def test_columns_come_in_the_order_asked_for(client, numbers, columns) -> None:
    table = client.download_arrow(numbers, columns, limit=3)
    assert table.column_names == columns
    assert table.num_rows == 3


def test_filters_with_a_limit(client, numbers) -> None:
    table = client.download_arrow(numbers, ["id"], filters=("mod", "=", 7), limit=3, offset=1)
    assert table["id"].to_pylist() == [17, 27, 37]
    both = client.download_arrow(numbers, filters=[("mod", "=", 7), ("id", "<", 50)])
    assert both["id"].to_pylist() == [7, 17, 27, 37, 47]
    nothing = client.download_arrow(numbers, filters=("id", ">", ROWS))
    assert (nothing.num_rows, nothing.column_names) == (0, ["id", "vector", "mod"])


def test_a_stream_is_an_iterator_of_batches(client, numbers) -> None:
    with client.download_stream(numbers) as stream:
        assert stream.schema.names == ["id", "vector", "mod"]
        assert sum(batch.num_rows for batch in stream) == ROWS
        assert list(stream) == []


def test_a_stream_left_early_is_cancelled(client, numbers) -> None:
    with client.download_stream(numbers) as stream:
        assert next(stream).num_rows > 0
    assert list(stream) == []
    assert client.get_info(numbers).rows == ROWS


def test_a_stream_as_arrows_own_reader(client, numbers) -> None:
    reader = client.download_stream(numbers, ["id"]).to_reader()
    assert isinstance(reader, pa.RecordBatchReader)
    assert reader.read_all().num_rows == ROWS


def test_what_was_downloaded_can_be_inserted(client, numbers, dataset) -> None:
    with client.download_stream(numbers) as stream:
        assert client.insert(dataset, stream).rows == ROWS
    assert client.get_info(dataset).schema.names == client.get_info(numbers).schema.names


REFUSED = [
    (dict(columns=["nope"]), longbow.InvalidArgument, "column_not_found"),
    (dict(limit=-1), longbow.InvalidArgument, "bad_value"),
    (dict(offset=-1), longbow.InvalidArgument, "bad_value"),
    (dict(filters=("nope", "=", 1)), longbow.InvalidArgument, "column_not_found"),
    (dict(filters=("mod", "=", "x")), longbow.InvalidArgument, "filter_value"),
    (dict(where="mod ="), longbow.InvalidArgument, "bad_sql"),
    (dict(filters=("mod", "in", 1)), longbow.InvalidArgument, "filter_value"),
]


@pytest.mark.parametrize("arguments, kind, code", REFUSED)
def test_what_cannot_be_answered_is_refused(client, numbers, arguments, kind, code) -> None:
    with pytest.raises(kind) as caught:
        client.download_arrow(numbers, **arguments)
    assert caught.value.code == code


def test_an_unknown_dataset_is_not_found(client) -> None:
    with pytest.raises(longbow.NotFound, match="dataset_not_found: .*'nowhere'"):
        client.download_arrow("nowhere")


def test_one_row_by_its_id(client, numbers) -> None:
    assert client.get(numbers, 42) == {"id": 42, "vector": [84.0, 85.0], "mod": 2}
    with pytest.raises(longbow.NotFound, match="id_not_found"):
        client.get(numbers, ROWS)
