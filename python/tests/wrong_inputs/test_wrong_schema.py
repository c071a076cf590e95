"""Schemas that are no dataset, or not this dataset's."""

from __future__ import annotations

import pyarrow as pa
from wire import Wire, rows
from wrong import GOOD, Target, Wrong, each, put_schema

F32 = pa.float32()
VECTOR = pa.list_(F32, 2)
ID = ("id", pa.int64())
METRIC = b"longbow.metric"
QUANTIZATION = b"longbow.quantization"
INDEX = b"longbow.index"
RECALL = b"longbow.recall_target"


def new(*columns: tuple[str, pa.DataType], metric: bytes | None = None) -> pa.RecordBatch:
    """A batch of one row of zeros for a dataset that does not exist."""
    schema = pa.schema(columns, metadata=None if metric is None else {METRIC: metric})
    arrays = [pa.array([zero(data_type)], data_type) for _, data_type in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def quantized(
    value: bytes, metric: bytes | None = None, column: str = "vector", key: bytes = QUANTIZATION
) -> pa.RecordBatch:
    """A good batch but for what the field of a column says, of quantization by default."""
    batch = new(ID, ("vector", VECTOR), metric=metric)
    fields = [
        field.with_metadata({key: value}) if field.name == column else field
        for field in batch.schema
    ]
    schema = pa.schema(fields, batch.schema.metadata)
    return pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def with_index(value: bytes, metric: bytes | None = None, column: str = "vector") -> pa.RecordBatch:
    return quantized(value, metric, column, INDEX)


def with_recall(value: bytes, column: str = "vector") -> pa.RecordBatch:
    return quantized(value, column=column, key=RECALL)


def zero(data_type: pa.DataType) -> object:
    if pa.types.is_fixed_size_list(data_type):
        return [zero(data_type.value_type)] * data_type.list_size
    if pa.types.is_nested(data_type):
        return []
    if pa.types.is_boolean(data_type):
        return False
    return "0" if pa.types.is_string(data_type) else 0


def union() -> pa.RecordBatch:
    kinds, ints = pa.array([0], pa.int8()), pa.array([7])
    return new(ID, ("vector", VECTOR)).append_column(
        "mixed", pa.UnionArray.from_sparse(kinds, [ints])
    )


def with_column(name: str, array: pa.Array) -> pa.RecordBatch:
    return new(ID, ("vector", VECTOR)).append_column(name, array)


def replaced(name: str, array: pa.Array) -> pa.RecordBatch:
    """A batch for the good dataset with one column of another type."""
    batch = rows(1)
    return batch.set_column(batch.schema.get_field_index(name), name, array)


RUNS = pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), pa.array(["a"]))
VIEWS = pa.array([[1]], pa.list_view(pa.int64()))
NESTED = pa.array([["a"]], pa.list_(pa.dictionary(pa.int8(), pa.string())))

FIRST = {
    "no column at all": (new(), "no_id_column", ["'id'", "add one"]),
    "no id column": (new(("vector", VECTOR)), "no_id_column", ["'id'"]),
    "float id": (new(("id", pa.float64()), ("vector", VECTOR)), "bad_id_type", ["Float64"]),
    "boolean id": (new(("id", pa.bool_()), ("vector", VECTOR)), "bad_id_type", ["Boolean"]),
    "no vector column": (new(ID), "no_vector_column", ["FixedSizeList"]),
    "vectors of any length": (new(ID, ("vector", pa.list_(F32))), "no_vector_column", ["dim"]),
    "vectors of strings": (
        new(ID, ("vector", pa.list_(pa.string(), 2))),
        "no_vector_column",
        ["number type"],
    ),
    "duplicate column": (
        new(ID, ("vector", VECTOR), ("x", pa.int64()), ("x", pa.int64())),
        "duplicate_column",
        ["'x'"],
    ),
    "duplicate id": (new(ID, ID, ("vector", VECTOR)), "duplicate_column", ["'id'"]),
    "dimension 0": (new(ID, ("vector", pa.list_(F32, 0))), "bad_dimension", ["0", "65536"]),
    "dimension 100,000": (
        new(ID, ("vector", pa.list_(F32, 100_000))),
        "bad_dimension",
        ["'vector'", "100000", "65536"],
    ),
    "unknown metric": (
        new(ID, ("vector", VECTOR), metric=b"manhattan"),
        "unknown_metric",
        ["'manhattan'", "euclidean", "cosine", "dot_product"],
    ),
    "unknown quantization": (
        quantized(b"pq"),
        "bad_quantization",
        ["'vector'", "'pq'", "rabitq", "none"],
    ),
    "quantization of ids": (
        quantized(b"none", column="id"),
        "bad_quantization",
        ["'id'", "vector columns", "remove it"],
    ),
    "recall target that is no number": (
        with_recall(b"high"),
        "bad_recall_target",
        ["'vector'", "'high'", "above 0 and up to 1"],
    ),
    "unknown index": (with_index(b"ivf"), "bad_index", ["'vector'", "'ivf'", "spfresh"]),
    "index of no vector": (
        with_index(b"hnsw", column="id"),
        "bad_index",
        ["'id'", "remove it"],
    ),
    "recall target above 1": (with_recall(b"1.5"), "bad_recall_target", ["'vector'", "'1.5'"]),
    "recall target of 0": (with_recall(b"0"), "bad_recall_target", ["'vector'", "'0'"]),
    "recall target that is NaN": (with_recall(b"NaN"), "bad_recall_target", ["'vector'", "'NaN'"]),
    "recall target of ids": (
        with_recall(b"0.9", column="id"),
        "bad_recall_target",
        ["'id'", "vector columns", "remove it"],
    ),
    "column without a type": (with_column("nothing", pa.nulls(1)), "null_column", ["'nothing'"]),
    "union column": (union(), "unsupported_type", ["mixed", "Union"]),
    "run-end encoded column": (with_column("runs", RUNS), "unsupported_type", ["'runs'"]),
    "list view column": (with_column("views", VIEWS), "unsupported_type", ["'views'"]),
    "dictionary in a list": (with_column("nested", NESTED), "unsupported_type", ["'nested'"]),
}

LATER = {
    "changed type": (
        replaced("year", pa.array(["x"])),
        "schema_changed",
        ["'year'", "'good'", "expected Int32", "got Utf8"],
    ),
    "changed id type": (
        replaced("id", pa.array(["x"])),
        "schema_changed",
        ["'id'", "expected Int64", "got Utf8"],
    ),
    "changed dimension": (
        replaced("vector", pa.array([[1, 2, 3]], pa.list_(F32, 3))),
        "schema_changed",
        ["'vector'", "expected FixedSizeList(2", "got FixedSizeList(3"],
    ),
    "changed element type": (
        replaced("vector", pa.array([[1, 2]], pa.list_(pa.float64(), 2))),
        "schema_changed",
        ["'vector'", "Float32", "Float64"],
    ),
    "changed metric": (
        rows(1).replace_schema_metadata({METRIC: b"cosine"}),
        "metric_changed",
        ["'good'", "euclidean", "cosine"],
    ),
    "changed quantization": (
        quantized(b"rabitq"),
        "quantization_changed",
        ["'vector'", "'good'", "rabitq", "new dataset"],
    ),
    "changed index": (
        with_index(b"spfresh"),
        "index_changed",
        ["'vector'", "'good'", "spfresh", "new dataset"],
    ),
    "changed recall target": (
        with_recall(b"0.9"),
        "recall_target_changed",
        ["'vector'", "'good'", "nothing", "0.9", "each search"],
    ),
    "missing vector column": (
        new(ID, ("other", VECTOR)),
        "column_missing",
        ["'vector'", "'good'"],
    ),
    "a new column of a type that is not stored": (
        rows(1).append_column("views", VIEWS),
        "unsupported_type",
        ["'views'"],
    ),
}


def puts(dataset: str, table: dict) -> list[Wrong]:
    """Each schema with a row, and alone, where a good one would create or change the dataset."""

    def case(how: str, name: str, call) -> Wrong:
        _, code, words = table[name]
        return Wrong(f"{name}, {how}", call, code, tuple(words))

    def with_row(batch: pa.RecordBatch):
        return lambda wire: wire.put(dataset, batch)

    def alone(batch: pa.RecordBatch):
        return lambda wire: put_schema(wire, dataset, batch.schema)

    made = []
    for name, (batch, _, _) in table.items():
        made.append(case("with a row", name, with_row(batch)))
        made.append(case("alone", name, alone(batch)))
    return made


@each(*puts("new", FIRST))
def test_schemas_that_are_no_dataset_are_refused(target: Target, wrong: Wrong) -> None:
    target.check_refused(wrong)


@each(*puts(GOOD, LATER))
def test_schemas_that_are_not_the_datasets_are_refused(target: Target, wrong: Wrong) -> None:
    target.check_refused(wrong)


def test_a_refused_name_is_free_for_a_good_schema(target: Target) -> None:
    def bad(wire: Wire) -> None:
        wire.put("free", new(ID))

    target.check_refused(Wrong("no vector column", bad, "no_vector_column", ()))
    target.wire.put("free", new(ID, ("vector", VECTOR)))
    assert target.wire.get("free")["id"].to_pylist() == [0]
    target.wire.act("delete-dataset", {"dataset": "free"})
