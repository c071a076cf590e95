"""A k-NN join whose answers nobody reads for a while."""

import threading
import urllib.request

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight
import pytest
from server import Server

import longbow

QUERIES, K, MESSAGE = 100_000, 100, 512
# Requests that are answered one after the other while a join stands still.
LOOKS = 100
RANDOM = np.random.default_rng(5)


@pytest.fixture
def alone(tmp_path):
    """A server that answers nobody else, with 2,000 rows."""
    running = Server(tmp_path / "data")
    with longbow.connect(running.uri, running.meta_uri) as client:
        client.insert("points", RANDOM.normal(size=(2_000, 4)).astype("f4"))
        client.wait_until_indexed("points")
    yield running
    running.kill()


def rows_found(server: Server) -> int:
    """Rows that searches have found so far, from the metrics."""
    with urllib.request.urlopen(f"http://{server.http}/metrics") as page:
        for line in page.read().decode().splitlines():
            if line.startswith("longbow_flight_rows") and 'method="search"' in line:
                return int(float(line.split()[-1]))
    return 0


def settled(server: Server) -> int:
    """Rows found once no more come, however often the server answers others."""
    found, looks = 0, 0
    while looks < LOOKS:
        now = rows_found(server)
        looks = looks + 1 if now == found and now > 0 else 0
        found = now
    return found


def by_exchange(server: Server):
    writer, reader = flight.connect(f"grpc+tcp://{server.data}").do_exchange(
        flight.FlightDescriptor.for_command(b"VectorSearch")
    )
    flat = pa.array(RANDOM.normal(size=MESSAGE * 4).astype("f4"))
    batch = pa.record_batch(
        {
            "dataset": pa.array(["points"] * MESSAGE),
            "k": pa.array([K] * MESSAGE, pa.int32()),
            "query_vector": pa.FixedSizeListArray.from_arrays(flat, 4),
        }
    )

    def write() -> None:
        writer.begin(batch.schema)
        for start in range(0, QUERIES, MESSAGE):
            writer.write_batch(batch.slice(0, min(MESSAGE, QUERIES - start)))
        writer.done_writing()

    thread = threading.Thread(target=write, daemon=True)
    thread.start()

    def end() -> None:
        # No thread is left in pyarrow, also where the test fails.
        reader.cancel()
        thread.join()

    # A writer that is dropped reads what is left, and forgets it.
    return reader, writer, end


def by_get(server: Server):
    vectors = RANDOM.normal(size=(QUERIES, 4)).round(3).tolist()
    ticket = f'{{"search":{{"dataset":"points","k":{K},"vectors":{vectors}}}}}'
    reader = flight.connect(f"grpc+tcp://{server.data}").do_get(flight.Ticket(ticket.encode()))
    return reader, None, reader.cancel


@pytest.mark.parametrize("ask", [by_exchange, by_get])
def test_what_is_not_read_is_not_searched_for(alone, ask, request) -> None:
    reader, _writer, end = ask(alone)
    request.addfinalizer(end)
    # Some messages wait here, some there, some are on their way: a small share of all.
    assert settled(alone) <= 40 * MESSAGE * K < QUERIES * K // 4
    rows, last = 0, -1
    for chunk in reader:
        numbers = chunk.data["query_index"]
        assert numbers[0].as_py() == last + 1
        rows, last = rows + chunk.data.num_rows, numbers[-1].as_py()
    assert (rows, last) == (QUERIES * K, QUERIES - 1)
