"""Every kind of data reads as the same rows."""

import contextlib

import dask
import dask.dataframe
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from longbow import InvalidArgument
from longbow.rows import Columns, Shaper
from longbow.source import frames, total_rows

ROWS = [
    {"id": 1, "vector": [1.0, 2.0], "name": "one"},
    {"id": 2, "vector": [3.0, 4.0], "name": None},
    {"id": 3, "vector": [5.0, 6.0], "name": "three"},
]
TABLE = pa.Table.from_pylist(
    ROWS,
    pa.schema([("id", pa.int64()), ("vector", pa.list_(pa.float32())), ("name", pa.string())]),
)
PANDAS = pd.DataFrame(ROWS)


class OnlyArrowStream:
    """A stranger that knows Arrow's stream interface and nothing else."""

    def __arrow_c_stream__(self, requested_schema=None):
        return TABLE.__arrow_c_stream__(requested_schema)


class OnlyArrowArray:
    """A stranger that knows Arrow's array interface and nothing else."""

    def __arrow_c_array__(self, requested_schema=None):
        return TABLE.to_batches()[0].__arrow_c_array__(requested_schema)


@contextlib.contextmanager
def dask_frame():
    # Dask's default turns a column of lists into text; some of its versions
    # do so when the frame is made, some when it is computed.
    with dask.config.set({"dataframe.convert-string": False}):
        yield dask.dataframe.from_pandas(PANDAS, npartitions=2)


def _columns(rows, make=list):
    return {name: make([row[name] for row in rows]) for name in rows[0]}


SOURCES = {
    "rows": (ROWS, 3),
    "columns": (_columns(ROWS), 3),
    "pandas": (PANDAS, 3),
    "pandas-index": (PANDAS.set_axis(["x", "y", "z"]), 3),
    "pandas-arrow": (TABLE.to_pandas(types_mapper=pd.ArrowDtype), 3),
    "polars": (pl.DataFrame(ROWS), 3),
    "polars-lazy": (pl.DataFrame(ROWS).lazy(), None),
    "table": (TABLE, 3),
    "table-chunked": (pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)]), 3),
    "batch": (TABLE.to_batches()[0], 3),
    "reader": (TABLE.to_reader(max_chunksize=1), None),
    "arrow-stream": (OnlyArrowStream(), None),
    "arrow-array": (OnlyArrowArray(), None),
    "batches": (iter(TABLE.to_batches(max_chunksize=2)), None),
    "frames": ((PANDAS.iloc[i : i + 1] for i in range(3)), None),
    "list-of-batches": (TABLE.to_batches(max_chunksize=2), None),
    "generator-of-rows": ((row for row in ROWS), None),
    "tuple-of-rows": (tuple(ROWS), None),
    "generator-of-columns": ((_columns(ROWS[i : i + 1]) for i in range(3)), None),
    "list-of-arrays": ([_columns(ROWS[:2], np.array), _columns(ROWS[2:], np.array)], None),
    "list-of-arrow-columns": ([_columns(ROWS[:1], pa.array), _columns(ROWS[1:], pa.array)], None),
    "empty-columns-first": ([{"id": [], "vector": [], "name": []}, _columns(ROWS)], None),
    "empty-rows-first": ([[], ROWS], None),
    "series": ([{name: pl.Series(of) for name, of in _columns(ROWS).items()}], None),
    "generator-of-lists-of-rows": ((ROWS[i : i + 2] for i in (0, 2)), None),
}


def shaped(data, **columns) -> pa.Table:
    spec = Columns(**columns)
    shaper = Shaper(spec, total_rows(data))
    return pa.Table.from_batches(shaper.batches(frames(data, spec.vector_name())))


@pytest.mark.parametrize("kind", SOURCES)
def test_every_kind_reads_as_the_same_rows(kind: str) -> None:
    data, total = SOURCES[kind]
    assert total_rows(data) == total
    table = shaped(data)
    assert table.to_pylist() == ROWS
    assert table.schema.names == ["id", "vector", "name"]
    assert pa.types.is_fixed_size_list(table.schema.field("vector").type)
    assert table.schema.field("name").type == pa.string()
    assert b"pandas" not in (table.schema.metadata or {})


def test_dask_is_read_partition_by_partition() -> None:
    with dask_frame() as frame:
        read = [part.columns["id"].to_pylist() for part in frames(frame, "vector")]
        assert read == [[1, 2], [3]]
        assert shaped(frame).to_pylist() == ROWS


def test_dask_with_lists_made_text_is_explained() -> None:
    frame = dask.dataframe.from_pandas(PANDAS, npartitions=1)
    with pytest.raises(InvalidArgument, match="dataframe.convert-string"):
        shaped(frame)


def test_streams_are_read_as_they_are_needed() -> None:
    taken = []

    def source():
        for number in range(3):
            taken.append(number)
            yield TABLE.to_batches()[0]

    shaper = Shaper(Columns(), None)
    batches = shaper.batches(frames(source(), "vector"))
    next(batches)
    assert taken == [0]


def test_many_tiny_chunks_are_compacted() -> None:
    chunked = pa.concat_tables([TABLE.slice(0, 1)] * 100)
    assert len(list(frames(chunked, "vector"))) == 1


def test_large_chunks_are_not_copied() -> None:
    half = pa.table({"id": range(5000), "vector": pa.array([[1.0]] * 5000, pa.list_(pa.float32()))})
    read = list(frames(pa.concat_tables([half, half]), "vector"))
    assert [frame.rows for frame in read] == [5000, 5000]
    address = half["id"].chunk(0).buffers()[1].address
    assert read[1].columns["id"].buffers()[1].address == address


def test_a_row_of_lists_is_one_row() -> None:
    row = {"vector": [0.5, 0.25], "spans": [[0, 5], [6, 9]]}
    assert [frame.rows for frame in frames([row], "vector")] == [1]
    assert total_rows([row]) == 1


def test_rows_with_different_keys_have_nulls() -> None:
    rows = [{"id": 1, "vector": [1.0]}, {"id": 2, "vector": [2.0], "extra": 5}]
    assert shaped(rows)["extra"].to_pylist() == [None, 5]


MASKED = np.ma.array([7, 8], mask=[False, True])
TIMES = list(map(pd.Timestamp, ["2024-02-29T00:00:00.000000001", "2024-03-01"]))
HIDDEN_TIMES = np.ma.array(pd.DatetimeIndex(TIMES).to_numpy("M8[ns]"), mask=[True, False])
MASKED_CELLS = [
    (MASKED, [7, None]),
    (np.ma.array([0.5, 1.5], mask=[True, False]), [None, 1.5]),
    (np.ma.array(["a", "b"], mask=[False, True]), ["a", None]),
    (np.ma.array([7, 8]), [7, 8]),
    ([7, np.ma.masked], [7, None]),
    ([[1, 2], MASKED], [[1, 2], [7, None]]),
    (np.array([None, MASKED[1]], object), [None, None]),
    ([HIDDEN_TIMES, HIDDEN_TIMES.data], [[None, TIMES[1]], TIMES]),
    ([HIDDEN_TIMES - HIDDEN_TIMES[1], None], [[None, pd.Timedelta(0)], None]),
]


@pytest.mark.parametrize("column, told", MASKED_CELLS)
def test_what_a_mask_hides_is_null(column, told) -> None:
    vectors = np.ones((2, 2), "f4")
    data = {"id": [1, 2], "vector": vectors, "x": column, "y": ["", ""]}
    table = shaped(data)
    assert (table["x"].to_pylist() if "x" in table.column_names else [None] * 2) == told
    rows = [{"id": n, "vector": vectors[n], "x": column[n]} for n in (0, 1)]
    table = shaped(rows)
    assert (table["x"].to_pylist() if "x" in table.column_names else [None] * 2) == told


#: The ways to give a matrix.
OF_MATRIX = [
    lambda matrix: matrix,
    lambda matrix: {"id": [1, 2], "vector": matrix},
    lambda matrix: {"id": [1, 2], "vector": list(matrix)},
    lambda matrix: [{"id": n, "vector": matrix[n]} for n in (0, 1)],
    lambda matrix: pd.DataFrame({"id": [1, 2], "vector": list(matrix)}),
    lambda matrix: iter([matrix]),
]


@pytest.mark.parametrize("make", OF_MATRIX)
def test_vectors_with_a_mask_are_read_if_it_hides_nothing(make) -> None:
    matrix = np.ma.array(np.arange(4, dtype="f8").reshape(2, 2), mask=False)
    table = shaped(make(matrix))
    assert table["vector"].to_pylist() == [[0, 1], [2, 3]]
    assert table.schema.field("vector").type == pa.list_(pa.float64(), 2)


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", "i4", "c8"])
@pytest.mark.parametrize("place", [(0, 0), (0, 1), (1, 0), (1, 1), 0, 1, (slice(None), 0), ...])
@pytest.mark.parametrize("make", OF_MATRIX)
def test_what_a_mask_hides_of_vectors_is_told_by_its_place(make, place, kind) -> None:
    matrix = np.ma.array(np.ones((2, 2), kind), mask=False)
    matrix[place] = np.ma.masked
    row, at = np.argwhere(matrix.mask)[0]
    with pytest.raises(InvalidArgument, match=f"row {row} of column 'vector'") as caught:
        shaped(make(matrix))
    assert caught.value.code == "invalid_vector"
    assert f"at position {at}" in caught.value.message


def test_what_pandas_counts_as_missing_among_lists_is_null() -> None:
    tags = [[None, 1.0], float("nan"), [2.0]]
    table = shaped(PANDAS.assign(tags=tags))
    assert table["tags"].to_pylist() == [[None, 1.0], None, [2.0]]


NUMBERS = [
    [1.0, True],
    [None, 1.0, False],
    [1, True],
    [1.0, np.True_],
    [1, np.False_],
    np.array([1.0, True], object),
    pd.Series([1.0, 2, True], dtype=object),
]


@pytest.mark.parametrize("cells", NUMBERS, ids=repr)
def test_a_boolean_among_numbers_is_no_number(cells) -> None:
    count = len(cells)
    data = {"id": range(count), "vector": np.ones((count, 2)), "x": cells}
    series = pd.Series(list(cells), dtype=object)
    frame = pd.DataFrame({"id": range(count), "vector": [[1.0]] * count, "x": series})
    for given in (data, frame):
        with pytest.raises(InvalidArgument, match=f"'x': row {count - 1} is .*, of type bool"):
            shaped(given)


@pytest.mark.parametrize("cells", [[True, None], [None, np.True_], [True, np.False_]], ids=repr)
def test_booleans_alone_are_booleans(cells) -> None:
    table = shaped({"id": [1, 2], "vector": np.ones((2, 2)), "x": cells})
    assert table["x"].type == pa.bool_()
    assert table["x"].to_pylist() == [None if one is None else bool(one) for one in cells]


FOREIGN = {
    "a number of 128 bits": (pl.Series([1], dtype=pl.Int128), "Int128"),
    "an object of polars": (pl.Series([object()], dtype=pl.Object), "Object"),
    "an interval": (pd.Series([pd.Interval(0, 1)], dtype=object), "Interval"),
    "a complex number": (pd.Series([1j]), ""),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_type_that_arrow_does_not_have_is_told_with_its_column(kind: str) -> None:
    series, words = FOREIGN[kind]
    data = {"id": [1], "vector": [[1.0]], "odd": series}
    frame = pl.DataFrame if isinstance(series, pl.Series) else pd.DataFrame
    for given in (data, frame(data)):
        with pytest.raises(InvalidArgument, match=f"column 'odd'.*{words}") as caught:
            shaped(given)
        assert caught.value.code == "invalid_data"


BAD = [
    (np.array(3), "2-D"),
    ("text", "can't insert a str"),
    (42, "can't insert a int"),
    (np.zeros(3), "2-D"),
    (iter([1, 2]), "not int"),
    ({"id": 1, "vector": [1.0, 2.0]}, "column 'id' is of type int"),
    ({"id": "ab", "vector": [[1.0], [2.0]]}, "column 'id' is of type str"),
    ({"id": [1, 2], "vector": [[1.0]]}, "differ in length"),
    ([{"id": object(), "vector": [1.0]}], "column 'id'"),
    ([{"id": 1, "vector": [1.0], "size": 2**70}], "column 'size'"),
]


@pytest.mark.parametrize("data, words", BAD)
def test_what_is_not_data_is_refused(data, words: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        shaped(data)
    assert caught.value.code == "invalid_data"
    assert words in caught.value.message
