"""Vectors, from whatever holds them to Arrow's ``FixedSizeList<T>[dim]``.

Numbers go over as whole buffers (numpy or Arrow), never one Python object a
number, unless Python lists are what was given. numpy is used when the data is
numpy's and is not needed otherwise.
"""

from __future__ import annotations

import base64
import numbers
import sys
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .errors import InvalidArgument

#: Elements that a vector may have, by numpy's name for the type.
ELEMENTS: dict[str, pa.DataType] = {
    "float16": pa.float16(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
}
_COMPLEX = {"complex64": "float32", "complex128": "float64"}
_ARROW_ELEMENTS = set(ELEMENTS.values())
#: The ends of numpy's names for times in the units that Arrow has too.
_ARROW_TIMES = ("8[s]", "8[ms]", "8[us]", "8[ns]")


def is_numpy(value: Any) -> bool:
    """Whether ``value`` is a numpy array, found out without importing numpy."""
    return type(value).__module__ == "numpy" and hasattr(value, "dtype") and hasattr(value, "ndim")


def is_masked(value: Any) -> bool:
    """Whether ``value`` is a numpy array with a mask, or its constant ``masked``."""
    ma = sys.modules.get("numpy.ma")
    return ma is not None and isinstance(value, ma.MaskedArray)


def unmasked(value: Any) -> Any:
    """An array with a mask as a plain one; as lists if some of it is masked, with None there: what
    a mask hides is not to be taken for data."""
    if not value.mask.any():
        return value.data
    if value.ndim and value.dtype.str.endswith(_ARROW_TIMES):
        # Of nanoseconds and of far times, tolist makes bare integers.
        return [unmasked(one) if is_masked(one) else one for one in value]
    return value.tolist()


def unmasked_matrix(matrix: Any, name: str, first_row: int = 0) -> Any:
    """The same for vectors, of which no number may be masked."""
    if matrix.mask.any():
        row, at = (int(place[0]) for place in matrix.mask.nonzero())
        raise InvalidArgument(
            "invalid_vector",
            f"row {first_row + row} of column {name!r} is masked at position {at}: leave the row "
            "out, or fill it by filled()",
        )
    return matrix.data


def is_list_type(kind: pa.DataType) -> bool:
    """Whether an Arrow type is one of the three list types of numbers."""
    lists = (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )
    return lists and kind.value_type in _ARROW_ELEMENTS


def is_vector(value: Any) -> bool:
    """Whether one cell looks like a vector: a sequence that begins with a number, or does after
    None, so that what a vector lacks is told as such wherever it is."""
    if is_numpy(value):
        return bool(value.ndim == 1) and value.dtype.kind in "fiuc"
    if isinstance(value, (list, tuple)) and value:
        first = value[0]
        if first is None:
            first = next((one for one in value if one is not None), None)
        return _is_number(first)
    return False


def is_hollow(cell: Any) -> bool:
    """Whether a cell is a list of None alone, as a mask over a whole vector leaves it."""
    starts_so = isinstance(cell, (list, tuple)) and bool(cell) and cell[0] is None
    return starts_so and all(one is None for one in cell)


def first_cell(cells: Any) -> Any:
    """The cell that tells what a column holds: the first with a value in it, a hollow one only if
    no other is there.

    >>> first_cell([None, [None, None], [None, 2.0]])
    [None, 2.0]
    """
    hollow = None
    for cell in cells:
        if cell is not None and not is_hollow(cell):
            return cell
        hollow = cell if hollow is None else hollow
    return hollow


def fixed(
    column: Any,
    name: str,
    first_row: int = 0,
    dtype: str | None = None,
    usual: pa.DataType | None = None,
) -> tuple[pa.Array, dict[str, str]]:
    """A column of vectors as a FixedSizeList array, and schema metadata for it.

    ``column`` is a 2-D numpy array, an Arrow list array, or a sequence of
    lists or 1-D arrays. Typed data keeps its element type; Python lists get the
    ``usual`` one, or else float32; ``dtype`` (a key of :data:`ELEMENTS`) overrides both. Complex
    numbers are laid out as real and imaginary parts side by side, twice the
    dimension. ``first_row`` is added to the row numbers that errors name.

    >>> array, metadata = fixed([[1, 2], [3, 4]], "vector")
    >>> str(array.type), metadata
    ('fixed_size_list<item: float>[2]', {})
    """
    if dtype is not None and dtype not in ELEMENTS:
        raise InvalidArgument("invalid_dtype", f"{dtype!r} is not one of {', '.join(ELEMENTS)}")
    metadata: dict[str, str] = {}
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        array = _from_arrow(column, name, first_row)
    elif is_numpy(column) and column.ndim == 2:
        array, metadata = _from_matrix(column, name)
    else:
        element = (usual or pa.float32()) if dtype is None else ELEMENTS[dtype]
        array, metadata = _from_cells(list(column), name, first_row, element)
    if dtype is not None and array.type.value_type != ELEMENTS[dtype]:
        array = _cast(array, ELEMENTS[dtype], name)
    return array, metadata


def one_array(column: Any) -> pa.Array:
    """A chunked column as one array, without a copy where it has one chunk."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 0:
        return pa.array([], column.type)
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def plain_text(column: Any) -> pa.Array:
    """A column as one array; text in the layout that every Arrow reader knows."""
    array = one_array(column)
    kind = array.type
    if pa.types.is_large_string(kind) or str(kind) == "string_view":
        return array.cast(pa.string())
    return array


def _cast(array: pa.Array, element: pa.DataType, name: str) -> pa.Array:
    try:
        return array.cast(pa.list_(element, array.type.list_size))
    except pa.ArrowInvalid as error:
        raise InvalidArgument("invalid_vector", f"column {name!r}: {error}") from error


def _from_matrix(matrix: Any, name: str) -> tuple[pa.Array, dict[str, str]]:
    kind, metadata = str(matrix.dtype), {}
    if matrix.dtype.byteorder == ">":
        matrix = matrix.astype(matrix.dtype.newbyteorder("="))
        kind = str(matrix.dtype)
    if not matrix.flags.c_contiguous:
        matrix = matrix.copy(order="C")
    if kind in _COMPLEX:
        metadata = {"longbow.complex": "true", "longbow.vector_type": kind}
        matrix = matrix.view(_COMPLEX[kind])
        kind = str(matrix.dtype)
    if kind not in ELEMENTS:
        raise InvalidArgument(
            "invalid_vector",
            f"column {name!r} has elements of type {kind}; send one of "
            f"{', '.join([*ELEMENTS, *_COMPLEX])}",
        )
    if matrix.shape[1] == 0:
        raise _empty(name, 0)
    # pa.array over a flat, aligned array of numbers borrows numpy's buffer.
    flat = pa.array(matrix.reshape(-1), type=ELEMENTS[kind])
    return pa.FixedSizeListArray.from_arrays(flat, matrix.shape[1]), metadata


def _from_arrow(column: Any, name: str, first_row: int) -> pa.Array:
    column = one_array(column)
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if not is_list_type(column.type):
        raise _not_vectors(name, str(column.type))
    if pa.types.is_fixed_size_list(column.type):
        return column
    lengths = column.value_lengths()
    shape = pc.min_max(lengths).as_py()
    dim = shape["min"]
    if dim is None:
        raise _empty(name, first_row)
    if shape["max"] != dim:
        raise _ragged(lengths.to_pylist(), name, first_row)
    if dim == 0:
        raise _empty(name, first_row)
    if column.null_count:
        return column.cast(pa.list_(column.type.value_type, dim))
    return pa.FixedSizeListArray.from_arrays(column.flatten(), dim)


def _from_cells(
    cells: list[Any], name: str, first_row: int, element: pa.DataType
) -> tuple[pa.Array, dict[str, str]]:
    for row, cell in enumerate(cells):
        if cell is None:
            raise InvalidArgument("missing_vector", f"row {first_row + row} has no {name!r}")
        if is_hollow(cell):
            raise _holds_none(name, first_row + row, 0)
        if not (is_vector(cell) or hasattr(cell, "__len__") and len(cell) == 0):
            shown = f"{type(cell).__name__} {str(cell)[:40]!r} in row {first_row + row}"
            raise _not_vectors(name, shown)
    lengths = [len(cell) for cell in cells]
    if not cells or not lengths[0]:
        raise _empty(name, first_row)
    if min(lengths) != max(lengths):
        raise _ragged(lengths, name, first_row)
    if any(is_numpy(cell) for cell in cells) or any(isinstance(c[0], complex) for c in cells):
        import numpy

        _check_for_none(cells, name, first_row)
        return _from_matrix(numpy.stack([numpy.asarray(cell) for cell in cells]), name)
    try:
        # Given an integer type, Arrow cuts fractions off; and not every version makes halves.
        wide = pa.types.is_float32(element) or pa.types.is_float64(element)
        made = pa.array(cells, type=pa.list_(element, lengths[0]) if wide else None)
        array = made.cast(pa.list_(element, lengths[0]))
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError) as error:
        _check_for_none(cells, name, first_row)
        raise InvalidArgument("invalid_vector", f"column {name!r}: {error}") from error
    flat = array.flatten()
    if flat.null_count:
        row, at = divmod(pc.index(flat.is_null(), True).as_py(), lengths[0])
        raise _holds_none(name, first_row + row, at)
    return array, {}


def _check_for_none(cells: list[Any], name: str, first_row: int) -> None:
    """Refuses lists with None in them. It looks at each number: only for where it is needed."""
    for row, cell in enumerate(cells):
        if isinstance(cell, (list, tuple)):
            at = next((at for at, one in enumerate(cell) if one is None), None)
            if at is not None:
                raise _holds_none(name, first_row + row, at)


def _ragged(lengths: Sequence[int | None], name: str, first_row: int) -> InvalidArgument:
    expected = next(length for length in lengths if length is not None)
    row = next(i for i, n in enumerate(lengths) if n is not None and n != expected)
    return InvalidArgument(
        "dimension_mismatch",
        f"row {first_row + row} of column {name!r} has {lengths[row]} numbers, the rows before "
        f"it {expected}: vectors of a column have one dimension",
    )


def _empty(name: str, first_row: int) -> InvalidArgument:
    return InvalidArgument(
        "missing_vector",
        f"column {name!r} has no dimension: no vectors, or empty ones, at row {first_row}",
    )


def _holds_none(name: str, row: int, at: int) -> InvalidArgument:
    text = f"row {row} of column {name!r} holds None at position {at}, where vectors have numbers"
    return InvalidArgument("invalid_vector", text)


def _not_vectors(name: str, found: str) -> InvalidArgument:
    hint = ""
    if "string" in found or found.startswith("str"):
        hint = " (Dask turns lists into text: set its option dataframe.convert-string to False)"
    return InvalidArgument(
        "invalid_vector", f"column {name!r} holds {found}, not lists of numbers{hint}"
    )


def query(vector: Any) -> str:
    """One query vector for JSON: the base64 of float32, which takes a fraction of
    the time of a list of numbers; complex numbers interleaved.

    >>> query([1, -2.5])
    'AACAPwAAIMA='
    >>> query([1 - 2.5j])
    'AACAPwAAIMA='
    """
    return _base64(floats(vector).tobytes())


def queries(vectors: Any) -> list[str]:
    """Several query vectors for JSON.

    >>> queries([[1, -2.5], [0, 0]])
    ['AACAPwAAIMA=', 'AAAAAAAAAAA=']
    """
    rows = floats(vectors)
    size = 4 * rows.shape[1]
    elements = rows.tobytes()
    return [_base64(elements[at : at + size]) for at in range(0, len(elements), size)]


def _base64(elements: bytes) -> str:
    return base64.b64encode(elements).decode()


def matrix(vectors: Any) -> pa.Array:
    """Query vectors as a FixedSizeList array of their own element type."""
    if is_masked(vectors) and vectors.ndim == 2:
        vectors = unmasked_matrix(vectors, "query vectors")
    if isinstance(vectors, (pa.Array, pa.ChunkedArray)) or is_numpy(vectors):
        return fixed(vectors, "query vectors")[0]
    return fixed([_cell(vector) for vector in vectors], "query vectors")[0]


def _cell(vector: Any) -> Any:
    if isinstance(vector, (list, tuple)) or is_numpy(vector):
        return vector
    # Arrow's arrays and scalars, the Series of pandas and polars, Python's own arrays and
    # views, by what each can do.
    for convert in ("to_pylist", "to_numpy", "to_list", "as_py", "tolist"):
        if hasattr(vector, convert):
            return getattr(vector, convert)()
    return vector


def floats(vectors: Any) -> Any:
    """Query vectors as a buffer of float32: of one dimension for one vector, of
    two for several. An array of numpy's that is one already is not copied.

    >>> floats([1, 2]).tolist(), floats([[1, 2], [3, 4]]).tolist()
    ([1.0, 2.0], [[1.0, 2.0], [3.0, 4.0]])
    """
    if is_numpy(vectors) and vectors.dtype.str[1:] == "f4" and vectors.ndim in (1, 2):
        if vectors.dtype.isnative and (vectors.ndim == 1 or vectors.shape[1]):
            return vectors if vectors.flags.aligned else vectors.copy()
    many = is_many(vectors)
    array = matrix(vectors if many else [vectors])
    if not len(array):
        raise no_vectors()  # Views of memory have no shape with a zero.
    flat = array.flatten().cast(pa.float32(), safe=False)
    if flat.null_count:
        raise InvalidArgument("invalid_vector", "a query vector holds None")
    shape = [len(array), array.type.list_size] if many else [array.type.list_size]
    bytes_of = memoryview(flat.buffers()[1])[flat.offset * 4 : (flat.offset + len(flat)) * 4]
    return bytes_of.cast("f", shape)


def no_vectors() -> InvalidArgument:
    """The refusal of several queries that are none, whatever call they come by."""
    return InvalidArgument("missing_query", "no vectors to search for; give at least one")


def is_many(vectors: Any) -> bool:
    """Whether a query argument holds several vectors rather than one."""
    if isinstance(vectors, (pa.Array, pa.ChunkedArray)):
        return is_list_type(vectors.type)
    if is_numpy(vectors) or is_masked(vectors):
        return bool(vectors.ndim == 2)
    return isinstance(vectors, (list, tuple)) and bool(vectors) and not _is_number(vectors[0])


def _is_number(value: Any) -> bool:
    # Spans of time are integers to numpy.
    is_number = isinstance(value, numbers.Number) and not isinstance(value, bool)
    return is_number and type(value).__name__ != "timedelta64"
