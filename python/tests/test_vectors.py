"""Vectors of every origin become one FixedSizeList, and bad ones are named."""

import array
import base64

import numpy as np
import pyarrow as pa
import pytest

from longbow import InvalidArgument, vectors

MATRIX = np.arange(12).reshape(4, 3)


@pytest.mark.parametrize("name", sorted(vectors.ELEMENTS))
def test_a_matrix_keeps_its_element_type(name: str) -> None:
    array, metadata = vectors.fixed(MATRIX.astype(name), "v")
    assert array.type == pa.list_(vectors.ELEMENTS[name], 3)
    assert array.to_pylist() == MATRIX.tolist()
    assert metadata == {}


@pytest.mark.parametrize("name, part", [("complex64", "float32"), ("complex128", "float64")])
def test_complex_numbers_are_interleaved(name: str, part: str) -> None:
    array, metadata = vectors.fixed(np.array([[1 + 2j, 3 - 4j]], name), "v")
    assert array.type == pa.list_(vectors.ELEMENTS[part], 4)
    assert array.to_pylist() == [[1.0, 2.0, 3.0, -4.0]]
    assert metadata == {"longbow.complex": "true", "longbow.vector_type": name}


def test_a_contiguous_matrix_is_borrowed_not_copied() -> None:
    matrix = np.ones((1000, 8), np.float32)
    array, _ = vectors.fixed(matrix, "v")
    assert array.flatten().buffers()[1].address == matrix.ctypes.data


@pytest.mark.parametrize(
    "matrix",
    [MATRIX.astype("f4")[:, ::-1], MATRIX.astype("f4").T.copy().T, MATRIX.astype(">f4")],
    ids=["strided", "column-major", "big-endian"],
)
def test_any_layout_of_a_matrix_is_understood(matrix: np.ndarray) -> None:
    array, _ = vectors.fixed(matrix, "v")
    assert array.type == pa.list_(pa.float32(), 3)
    assert array.to_pylist() == matrix.tolist()


ARROW = [
    pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float64())),
    pa.array([[1.0, 2.0], [3.0, 4.0]], pa.large_list(pa.float64())),
    pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float64(), 2)),
    pa.array([[9.0, 9.0], [1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float64())).slice(1),
    pa.chunked_array([[[1.0, 2.0]], [[3.0, 4.0]]], pa.list_(pa.float64())),
]


@pytest.mark.parametrize("column", ARROW, ids=lambda column: str(column.type))
def test_arrow_lists_keep_their_element_type(column: pa.Array) -> None:
    array, _ = vectors.fixed(column, "v")
    assert array.type == pa.list_(pa.float64(), 2)
    assert array.to_pylist() == [[1.0, 2.0], [3.0, 4.0]]


CELLS = [
    ([[1, 2], [3, 4]], pa.float32()),
    ([(1.0, 2.0), [3, 4]], pa.float32()),
    ([np.array([1, 2], "f8"), np.array([3, 4], "f8")], pa.float64()),
    ([np.array([1, 2], "i1"), np.array([3, 4], "i1")], pa.int8()),
    ([[np.float32(1), np.float32(2)], [3, 4]], pa.float32()),
]


@pytest.mark.parametrize("cells, element", CELLS)
def test_cells_of_lists_and_arrays(cells: list, element: pa.DataType) -> None:
    array, _ = vectors.fixed(cells, "v")
    assert array.type == pa.list_(element, 2)
    assert array.to_pylist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "int8"])
def test_dtype_overrides_what_the_data_has(name: str) -> None:
    array, _ = vectors.fixed(MATRIX.astype("f8"), "v", dtype=name)
    assert array.type == pa.list_(vectors.ELEMENTS[name], 3)
    assert array.to_pylist() == MATRIX.tolist()


BAD = [
    ([[1, 2], [3, 4], [5]], {}, "dimension_mismatch", "row 102 of column 'v' has 1 numbers"),
    (pa.array([[1.0], [1.0, 2.0]]), {}, "dimension_mismatch", "row 101 of column 'v' has 2"),
    ([[1, 2], None], {}, "missing_vector", "row 101 has no 'v'"),
    ([[1, 2], "text"], {}, "invalid_vector", "str 'text' in row 101"),
    ([[1, 2], [1, None]], {}, "invalid_vector", "row 101 of column 'v' holds None at position 1"),
    ([[None, 2], [1, 2]], {}, "invalid_vector", "row 100 of column 'v' holds None"),
    ([[1, 2], [None, None]], {}, "invalid_vector", "row 101 of column 'v' holds None"),
    ([np.ones(2), [1, None]], {}, "invalid_vector", "row 101 of column 'v' holds None"),
    ([[None, 1j], [None, 2j]], {}, "invalid_vector", "row 100 of column 'v' holds None"),
    ([[], []], {}, "missing_vector", "no dimension"),
    ([], {}, "missing_vector", "no dimension"),
    (np.zeros((2, 0), "f4"), {}, "missing_vector", "no dimension"),
    (np.zeros((2, 2), bool), {}, "invalid_vector", "type bool"),
    (pa.array(["a"]), {}, "invalid_vector", "holds string"),
    (MATRIX, {"dtype": "float8"}, "invalid_dtype", "'float8' is not one of float16"),
    (np.array([[1e3]]), {"dtype": "int8"}, "invalid_vector", "1000"),
]


@pytest.mark.parametrize("column, options, code, words", BAD)
def test_what_is_not_vectors_is_refused_by_row(column, options, code, words) -> None:
    with pytest.raises(InvalidArgument) as caught:
        vectors.fixed(column, "v", 100, **options)
    assert caught.value.code == code
    assert words in caught.value.message


QUERIES = [
    [1, 2.5],
    (1.0, 2.5),
    np.array([1, 2.5], "f4"),
    np.array([1, 2.5], "f2"),
    pa.array([1, 2.5]),
    pa.array([1, 2.5], pa.float32()),
    pa.array([[1, 2.5]], pa.list_(pa.float32(), 2))[0],
    array.array("d", [1, 2.5]),
    memoryview(array.array("f", [1, 2.5])),
]


def told(vector: str) -> list[float]:
    """The elements of a vector in base64."""
    return np.frombuffer(base64.b64decode(vector), "<f4").tolist()


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: type(query).__name__)
def test_a_query_is_one_vector_and_several_are_many(query) -> None:
    assert not vectors.is_many(query)
    assert told(vectors.query(query)) == [1.0, 2.5]
    assert vectors.is_many([query, query])
    assert [told(one) for one in vectors.queries([query, query])] == [[1.0, 2.5]] * 2


def test_a_matrix_of_queries() -> None:
    by_column = np.asfortranarray(MATRIX.astype("f4"))
    for queries in (MATRIX.astype("f4"), by_column, pa.array(MATRIX.tolist()), MATRIX.tolist()):
        assert vectors.is_many(queries)
        assert [told(one) for one in vectors.queries(queries)] == MATRIX.tolist()
    assert told(vectors.query(by_column[:, 1])) == MATRIX[:, 1].tolist()
    assert vectors.queries(MATRIX.astype("f4")[:0]) == []


def test_a_complex_query_is_interleaved() -> None:
    assert told(vectors.query(np.array([1 + 2j], "c8"))) == [1.0, 2.0]
