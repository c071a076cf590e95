"""Ids, vector columns, metadata and one schema: what a frame becomes."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from test_source import shaped

from longbow import InvalidArgument
from longbow.rows import BATCH_BYTES, Columns, Shaper, cut
from longbow.source import frames

MATRIX = np.arange(6, dtype="f4").reshape(3, 2)


def test_a_bare_matrix_gets_ids_that_go_on_over_a_stream() -> None:
    assert shaped(MATRIX)["id"].to_pylist() == [0, 1, 2]
    assert shaped(iter([MATRIX, MATRIX]))["id"].to_pylist() == list(range(6))
    assert shaped(MATRIX, vector="photo").column_names == ["id", "photo"]


IDS = [
    range(5, 8),
    [5, 6, 7],
    np.array([5, 6, 7]),
    pa.array([5, 6, 7]),
    pa.chunked_array([[5], [6, 7]]),
]


@pytest.mark.parametrize("ids", IDS, ids=lambda ids: type(ids).__name__)
def test_ids_may_be_given_apart(ids) -> None:
    assert shaped(MATRIX, ids=ids)["id"].to_pylist() == [5, 6, 7]
    assert shaped(iter([MATRIX[:1], MATRIX[1:]]), ids=ids)["id"].to_pylist() == [5, 6, 7]


ID_COLUMNS = [
    (pa.array(["a", "b", "c"]), pa.string()),
    (pa.array(["a", "b", "c"], pa.large_string()), pa.string()),
    (pa.array(["a", "b", "c"]).dictionary_encode(), pa.string()),
    (pd.Series(["a", "b", "c"]), pa.string()),
    (np.array([1, 2, 3], "u1"), pa.uint8()),
    ([1, 2, 3], pa.int64()),
]


@pytest.mark.parametrize("ids, kind", ID_COLUMNS)
def test_ids_are_integers_or_text(ids, kind: pa.DataType) -> None:
    table = shaped({"key": ids, "vector": MATRIX}, id="key")
    assert table.column_names == ["id", "vector"]
    assert table.schema.field("id").type == kind


ROW_2 = ("invalid_data", "'id': row 2 is ''")
BAD_IDS = [
    ({"vector": MATRIX}, {}, "missing_id", "no column 'id' among 'vector'"),
    ({"id": [1, None, 3], "vector": MATRIX}, {}, "missing_id", "row 1 has no id"),
    ({"id": [1.0, 2.0, 3.0], "vector": MATRIX}, {}, "invalid_ids", "double"),
    ({"id": [1, 2, 3], "vector": MATRIX}, {"ids": [1, 2, 3]}, "invalid_ids", "ids= was given"),
    ({"id": [1, 2, 3], "key": [1, 2, 3], "vector": MATRIX}, {"id": "key"}, "invalid_ids", "exists"),
    (MATRIX, {"ids": [1]}, "invalid_ids", "1 ids for 3 rows"),
    (MATRIX, {"ids": [1, 2, 2**70]}, "invalid_ids", "too large"),
    (iter([MATRIX]), {"ids": range(4)}, "invalid_ids", "4 ids for 3 rows"),
    (iter([MATRIX]), {"ids": range(2)}, "invalid_ids", "2 ids for"),
    (MATRIX, {"ids": [object()]}, "invalid_ids", "ids:"),
    (MATRIX, {"ids": "abc"}, "invalid_ids", "'abc', of type str; give a list"),
    (MATRIX, {"ids": 5}, "invalid_ids", "5, of type int; give a list"),
    (MATRIX, {"ids": [1, 2, "x"]}, "invalid_ids", "row 2 is 'x', of type str"),
    (MATRIX, {"ids": ["x", "y", 3]}, "invalid_ids", "row 2 is 3, of type int"),
    (MATRIX, {"ids": [1, True, 3]}, "invalid_ids", "row 1 is True, of type bool"),
    (MATRIX, {"ids": [1, 2, np.True_]}, "invalid_ids", "row 2 is np.True_, of type bool"),
    (MATRIX, {"ids": np.array([1, "x", 3], object)}, "invalid_ids", "row 1 is 'x'"),
    (MATRIX, {"ids": [1, 2.5, 3]}, "invalid_ids", "double, like 2.5 in row 1"),
    (MATRIX, {"ids": [1.0, 2.0, 3.0]}, "invalid_ids", "double, like 1.0 in row 0"),
    (MATRIX, {"ids": np.array([1, 2, 3.5], "f2")}, "invalid_ids", "halffloat, like 3.5 in row 2"),
    (MATRIX, {"ids": [True, False, True]}, "invalid_ids", "bool, like True in row 0"),
    ({"id": [1, 2, "x"], "vector": MATRIX}, {}, "invalid_data", "'id': row 2 is 'x', of type str"),
    ({"id": [1, np.True_, 3], "vector": MATRIX}, {}, "invalid_data", "'id': row 1 is np.True_"),
    ({"id": [[1], [2], [3]], "vector": MATRIX}, {}, "invalid_ids", "list, like [1] in row 0"),
    ({"id": np.ones((3, 1), int), "vector": MATRIX}, {}, "invalid_ids", "ndarray, like array([1])"),
    ({"id": np.empty((0, 2)), "vector": MATRIX[:0]}, {}, "invalid_ids", "these are ndarray: conve"),
    ({"id": np.empty(0), "vector": MATRIX[:0]}, {}, "invalid_ids", "these are double: convert"),
    ([{"id": n, "vector": [n]} for n in (1, 2, "x")], {}, "invalid_data", "'id': row 2 is 'x'"),
    (iter([{"id": [1], "vector": [[1]]}, {"id": [2, ""], "vector": [[1]] * 2}]), {}, *ROW_2),
]


@pytest.mark.parametrize("data, columns, code, words", BAD_IDS)
def test_bad_ids_are_refused(data, columns, code, words) -> None:
    with pytest.raises(InvalidArgument) as caught:
        shaped(data, **columns)
    assert caught.value.code == code
    assert words in caught.value.message


def vector_columns(table: pa.Table) -> list:
    return [f.name for f in table.schema if pa.types.is_fixed_size_list(f.type)]


LISTS = pa.array([[1.0, 2.0]] * 3)
VECTOR_COLUMNS = [
    ({"vector": LISTS}, None, ["vector"]),
    ({"photo": LISTS}, None, ["photo"]),
    ({"vector": LISTS, "tags": LISTS}, None, ["vector"]),
    ({"vector": LISTS, "photo": MATRIX}, None, ["vector", "photo"]),
    ({"photo": MATRIX, "tags": LISTS}, None, ["photo"]),
    ({"photo": LISTS, "text": LISTS}, "photo", ["photo"]),
    ({"photo": LISTS, "text": LISTS}, ["photo", "text"], ["photo", "text"]),
]


@pytest.mark.parametrize("columns, wanted, found", VECTOR_COLUMNS)
def test_which_columns_are_vectors(columns, wanted, found) -> None:
    table = shaped({"id": [1, 2, 3], **columns}, vector=wanted)
    assert vector_columns(table) == found


BAD_VECTORS = [
    ({"n": [1, 2, 3]}, None, "no vectors among 'id', 'n'"),
    ({"a": LISTS, "b": LISTS}, None, "which of 'a', 'b' are vectors"),
    ({"a": LISTS}, "b", "no column 'b' among 'id', 'a'"),
]


@pytest.mark.parametrize("columns, wanted, words", BAD_VECTORS)
def test_vectors_that_cannot_be_found(columns, wanted, words) -> None:
    with pytest.raises(InvalidArgument) as caught:
        shaped({"id": [1, 2, 3], **columns}, vector=wanted)
    assert caught.value.code == "missing_vector"
    assert words in caught.value.message


def test_the_metric_and_the_callers_metadata_are_sent() -> None:
    table = pa.table({"id": [1], "vector": [[1.0]]}).replace_schema_metadata({"mine": "kept"})
    assert shaped(table, metric="cosine").schema.metadata == {
        b"mine": b"kept",
        b"longbow.metric": b"cosine",
    }


def test_the_quantization_is_sent_with_vector_columns_only() -> None:
    schema = shaped({"id": [1], "vector": [[1.0]], "n": [2]}, quantization="none").schema
    assert schema.field("vector").metadata == {b"longbow.quantization": b"none"}
    assert schema.field("id").metadata is schema.field("n").metadata is None


def test_later_batches_take_the_schema_of_the_first() -> None:
    first = pa.record_batch({"id": pa.array([1], pa.int64()), "vector": [[1.0]]})
    later = pa.record_batch({"vector": [[2.0]], "id": pa.array([2], pa.int32())})
    table = shaped(iter([first, later]))
    assert table["id"].type == pa.int64()
    assert table["id"].to_pylist() == [1, 2]


BAD_STREAMS = [
    ([{"id": [1], "vector": [[1.0]]}, {"id": [2], "vector": [[1.0, 2.0]]}], "dimension_mismatch"),
    ([{"id": [1], "vector": [[1.0]]}, {"id": ["x"], "vector": [[1.0]]}], "schema_mismatch"),
    ([{"id": [1], "vector": [[1.0]]}, {"id": [2], "vector": [[1.0]], "n": [1]}], "schema_mismatch"),
]


@pytest.mark.parametrize("parts, code", BAD_STREAMS)
def test_a_stream_whose_schema_changes_is_refused(parts, code) -> None:
    with pytest.raises(InvalidArgument, match="from 1 on") as caught:
        shaped(iter([pa.record_batch(part) for part in parts]))
    assert caught.value.code == code


def test_objects_are_converted_a_chunk_at_a_time_and_rows_counted_over_all() -> None:
    cells = [np.ones(2, "f4")] * 25
    cells[17] = np.ones(3, "f4")
    data = {"id": range(25), "vector": cells}
    shaper = Shaper(Columns(), 25, chunk=10)
    batches = shaper.batches(frames(data, "vector"))
    assert next(batches).num_rows == 10
    with pytest.raises(InvalidArgument, match="row 17 of column 'vector' has 3"):
        next(batches)


def test_batches_are_cut_by_bytes_or_by_rows() -> None:
    batch = pa.record_batch({"vector": pa.array(np.zeros(3 * BATCH_BYTES, "u1"))})
    assert [part.nbytes for part in cut([batch], None)] == [BATCH_BYTES] * 3
    assert [part.num_rows for part in cut([batch.slice(0, 5)], 2)] == [2, 2, 1]


def test_an_empty_table_keeps_its_schema() -> None:
    table = pa.table(
        {"id": pa.array([], pa.int64()), "vector": pa.array([], pa.list_(pa.float32(), 4))}
    )
    shaper = Shaper(Columns(), 0)
    (batch,) = shaper.batches(frames(table, "vector"))
    assert batch.num_rows == 0
    assert batch.schema.field("vector").type == pa.list_(pa.float32(), 4)
