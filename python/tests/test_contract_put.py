"""DoPut as the contract says, with pyarrow alone."""

import pyarrow as pa
import pyarrow.flight as flight
import pytest
from wire import refused, rows

PATH = flight.FlightDescriptor.for_path


def test_each_batch_is_acknowledged_with_the_watermarks(wire, dataset) -> None:
    told = wire.put(dataset, rows(10), rows(5, 10), rows(1, 15))
    assert [one["rows"] for one in told] == [10, 5, 1]
    offsets = [one["offset"] for one in told]
    assert offsets == sorted(set(offsets))
    for one in told:
        assert isinstance(one["durable"], bool)
        assert one["searchable"] is True
        assert "replicated" in one
    assert wire.put(dataset, rows(1))[0]["offset"] > offsets[-1]


def test_a_client_that_reads_no_acknowledgement_works(wire, dataset) -> None:
    writer, _ = wire.data.do_put(PATH(dataset), rows(1).schema)
    for n in range(200):
        writer.write_batch(rows(10, n * 10))
    writer.close()
    assert wire.get(dataset).num_rows == 2000


def test_a_client_that_reads_one_acknowledgement_works(wire, dataset) -> None:
    writer, reader = wire.data.do_put(PATH(dataset), rows(1).schema)
    writer.write_batch(rows(10))
    assert reader.read() is not None
    for n in range(1, 200):
        writer.write_batch(rows(10, n * 10))
    writer.close()
    assert wire.get(dataset).num_rows == 2000


def test_an_acknowledgement_comes_before_the_stream_ends(wire, dataset) -> None:
    writer, reader = wire.data.do_put(PATH(dataset), rows(1).schema)
    for n in range(5):
        writer.write_batch(rows(1, n))
        assert b'"searchable":true' in reader.read().to_pybytes().replace(b" ", b"")
        assert wire.get(dataset).num_rows == n + 1
    writer.close()


def test_the_routing_header_is_accepted(wire, dataset) -> None:
    options = flight.FlightCallOptions(headers=[(b"x-longbow-key", b"tenant-7")])
    writer, _ = wire.data.do_put(PATH(dataset), rows(1).schema, options)
    writer.write_batch(rows(3))
    writer.close()
    assert wire.get(dataset).num_rows == 3


def test_dictionaries_are_accepted(wire, dataset) -> None:
    batch = rows(3)
    kinds = pa.array(["x", "y", "x"]).dictionary_encode()
    wire.put(dataset, batch.append_column("kind", kinds))
    assert wire.get(dataset)["kind"].to_pylist() == ["x", "y", "x"]


def test_compressed_batches_are_accepted(wire, dataset) -> None:
    codec = pa.ipc.IpcWriteOptions(compression="lz4")
    writer, _ = wire.data.do_put(
        PATH(dataset), rows(1).schema, flight.FlightCallOptions(write_options=codec)
    )
    writer.write_batch(rows(1000))
    writer.close()
    assert wire.get(dataset)["id"].to_pylist() == list(range(1000))


@pytest.mark.parametrize(
    "descriptor", [flight.FlightDescriptor.for_command(b"d"), PATH(), PATH("a", "b")], ids=str
)
def test_other_descriptors_are_refused(wire, descriptor) -> None:
    with refused(pa.ArrowInvalid, "PATH"):
        writer, _ = wire.data.do_put(descriptor, rows(1).schema)
        writer.write_batch(rows(1))
        writer.close()


def schema_of(**columns: pa.DataType) -> pa.RecordBatch:
    schema = pa.schema(columns)
    return pa.RecordBatch.from_arrays([pa.nulls(0, t) for t in columns.values()], schema=schema)


VECTOR = pa.list_(pa.float32(), 2)
SCHEMAS = [
    (schema_of(vector=VECTOR), "no_id_column"),
    (schema_of(id=pa.float64(), vector=VECTOR), "bad_id_type"),
    (schema_of(id=pa.int64()), "no_vector_column"),
    (schema_of(id=pa.int64(), vector=pa.list_(pa.float32())), "no_vector_column"),
    (schema_of(id=pa.int64(), vector=pa.list_(pa.string(), 2)), "no_vector_column"),
]


@pytest.mark.parametrize("batch, code", SCHEMAS, ids=lambda value: str(value)[:30])
def test_schemas_that_are_no_dataset_are_refused(wire, dataset, batch, code) -> None:
    with refused(pa.ArrowInvalid, code):
        wire.put(dataset, batch)
    with refused(pa.ArrowKeyError, dataset):
        wire.get(dataset)


def test_a_bad_batch_in_a_stream_leaves_the_good_ones(wire, dataset) -> None:
    bad = rows(3, 10).set_column(0, "id", pa.array([1, None, 3], pa.int64()))
    with refused(pa.ArrowInvalid, "null_value", "row 1", "'id'"):
        wire.put(dataset, rows(10), bad)
    assert wire.get(dataset)["id"].to_pylist() == list(range(10))


def test_a_put_on_the_meta_server_says_where_to_go(wire, dataset) -> None:
    with refused(pa.ArrowNotImplementedError, "data"):
        writer, _ = wire.meta.do_put(PATH(dataset), rows(1).schema)
        writer.write_batch(rows(1))
        writer.close()
