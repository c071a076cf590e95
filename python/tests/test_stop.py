"""A node that is told to stop while clients have streams open."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as flight
import pytest
from server import Server

import longbow

QUERIES = pa.schema(
    [("dataset", pa.string()), ("k", pa.int32()), ("query_vector", pa.list_(pa.float32()))]
)
ROWS = pa.record_batch(
    {"id": [1, 2], "vector": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2))}
)


def command(name: bytes) -> flight.FlightDescriptor:
    return flight.FlightDescriptor.for_command(name)


def test_streams_of_which_nothing_comes_end_with_the_node(tmp_path: Path) -> None:
    own = Server(tmp_path / "data")
    client = flight.connect(f"grpc+tcp://{own.data}")
    silent = client.do_exchange(command(b"VectorSearch"))
    queries = client.do_exchange(command(b"VectorSearch"))
    queries[0].begin(QUERIES)
    ingest = client.do_exchange(flight.FlightDescriptor.for_path("ingest", "d"))
    ingest[0].begin(ROWS.schema)
    put, told = client.do_put(flight.FlightDescriptor.for_path("d"), ROWS.schema)
    put.write_batch(ROWS)
    assert told.read() is not None
    assert own.stop() == 0
    assert "cut off" not in (tmp_path / "data.log").read_text()
    for _, answers in (silent, queries, ingest):
        with pytest.raises(flight.FlightUnavailableError, match="node_stopped"):
            answers.read_chunk()
    with pytest.raises(
        flight.FlightUnavailableError, match="node_stopped: .* acknowledged is kept"
    ):
        put.close()
    for writer, _ in (silent, queries, ingest):
        with pytest.raises(flight.FlightUnavailableError):
            writer.close()
    with longbow.open(tmp_path / "data") as database:
        assert database.get_info("d").rows == 2


def test_a_stream_that_goes_on_ends_with_the_node(tmp_path: Path) -> None:
    own = Server(tmp_path / "data")
    client = longbow.connect(own.uri, own.meta_uri)
    begun = threading.Event()

    def endless():
        for number in itertools.count():
            yield {"id": [number], "vector": [[1.0, float(number)]]}
            if number > 100:
                begun.set()

    with ThreadPoolExecutor(1) as pool:
        inserting = pool.submit(client.insert, "d", endless())
        assert begun.wait(60)
        assert own.stop() == 0
        with pytest.raises(longbow.LongbowError) as caught:
            inserting.result(60)
    assert caught.value.code == "node_stopped"
    assert "cut off" not in (tmp_path / "data.log").read_text()
    with longbow.open(tmp_path / "data") as database:
        assert database.get_info("d").rows > 100
