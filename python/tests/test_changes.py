"""The change feed: of one dataset with its rows, of all without; to the end, or on as it grows."""

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight
import pytest
from server import Server, binary
from wire import rows

import longbow


@pytest.fixture(scope="session")
def client(remote):
    """Only a server has this."""
    return remote


ROWS = [{"id": n, "vector": [float(n), 1.0]} for n in range(10)]


def ids(change: longbow.Change) -> list:
    return change.table["id"].to_pylist()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Server]:
    """A server of the test's own."""
    running = Server(tmp_path / "data", "--wal-segment-size", "1MiB", "--max-wal-size", "64MiB")
    yield running
    running.stop()


@pytest.fixture
def mine(own: Server) -> Iterator[longbow.LongbowClient]:
    with longbow.connect(own.uri, own.meta_uri) as client:
        yield client


def test_a_dataset_is_told_with_its_rows_and_nothing_else(client, dataset) -> None:
    other = f"{dataset}_other"
    client.insert(dataset, ROWS[:3])
    client.insert(other, ROWS[:5])
    client.delete(dataset, 1)
    client.insert(dataset, ROWS[3:5])
    told = list(client.changes(dataset))
    assert [change.kind for change in told] == ["create_dataset", "put", "delete", "put"]
    assert [change.dataset for change in told] == [dataset] * 4
    assert (ids(told[1]), told[2].table, ids(told[3])) == ([0, 1, 2], None, [3, 4])
    sequences = [change.sequence for change in told]
    assert sequences == sorted(set(sequences))
    # The numbers are those of the log: the other dataset's entries lie between.
    assert sequences[2] - sequences[1] == 3
    assert abs(told[1].timestamp.timestamp() - time.time()) < 600


def test_a_feed_goes_on_from_a_sequence(client, dataset) -> None:
    client.insert(dataset, ROWS[:3])
    client.insert(dataset, ROWS[3:5])
    told = list(client.changes(dataset))
    again = list(client.changes(dataset, since=told[2].sequence))
    assert [change.sequence for change in again] == [told[2].sequence]
    assert ids(again[0]) == [3, 4]
    assert list(client.changes(dataset, since=told[2].sequence + 1)) == []


def test_all_datasets_are_told_without_their_rows(client, dataset) -> None:
    client.insert(dataset, ROWS)
    client.insert(f"{dataset}_other", ROWS)
    first = next(client.changes(dataset)).sequence
    told = list(client.changes(since=first))
    assert [change.sequence for change in told] == list(range(first, first + 4))
    assert {change.dataset for change in told} == {dataset, f"{dataset}_other"}
    assert [change.table for change in told] == [None] * 4


def test_a_follower_sees_what_is_put_later(client, dataset) -> None:
    client.insert(dataset, ROWS[:1])
    with client.changes(dataset, follow=True) as feed:
        assert [next(feed).kind for _ in range(2)] == ["create_dataset", "put"]
        for row in ROWS[1:]:
            client.insert(dataset, [row])
            change = next(feed)
            assert ids(change) == [row["id"]]
        client.delete_dataset(dataset)
        # Nothing can come any more.
        assert [change.kind for change in feed] == ["drop_dataset"]


def test_what_a_follower_is_told_is_there_to_be_found(client, dataset) -> None:
    client.insert(dataset, ROWS[:1])
    with client.changes(dataset, follow=True) as feed:
        writer = threading.Thread(
            target=lambda: [client.insert(dataset, [row]) for row in ROWS[1:]]
        )
        writer.start()
        seen = 0
        while seen < len(ROWS):
            change = next(feed)
            for id in ids(change) if change.kind == "put" else []:
                assert client.get(dataset, id)["id"] == id
                seen += 1
        writer.join()


def test_a_follower_sees_each_put_once_and_in_order_while_many_write(client, dataset) -> None:
    client.insert(dataset, [{"id": -1, "vector": [1.0, 2.0]}])
    with client.changes(dataset, follow=True) as feed:

        def write(first: int) -> None:
            for n in range(first, first + 50):
                client.insert(dataset, [{"id": n, "vector": [1.0, 2.0]}])

        writers = [threading.Thread(target=write, args=(n * 50,)) for n in range(4)]
        for writer in writers:
            writer.start()
        told = [next(feed) for _ in range(202)]
        for writer in writers:
            writer.join()
    sequences = [change.sequence for change in told]
    assert sequences == sorted(set(sequences))
    assert sorted(id for change in told[1:] for id in ids(change)) == list(range(-1, 200))


def test_a_schema_that_grows_ends_the_feed_and_says_where_to_go_on(client, dataset) -> None:
    client.insert(dataset, ROWS[:2])
    wider = [{"id": 7, "vector": [1.0, 2.0], "title": "Dune"}]
    with client.changes(dataset, follow=True) as feed:
        first = [next(feed) for _ in range(2)]
        client.insert(dataset, wider)
        with pytest.raises(longbow.FailedPrecondition, match="from sequence") as grew:
            next(feed)
    assert grew.value.code == "schema_grew"
    onward = int(grew.value.message.rsplit(" ", 1)[1])
    assert onward == first[1].sequence + 1
    told = list(client.changes(dataset, since=onward))
    assert [change.kind for change in told] == ["schema", "put"]
    assert told[1].table.column_names == ["id", "vector", "title"]
    # What is before has the columns of its time, also when it is read now.
    feed = client.changes(dataset, since=first[1].sequence)
    assert next(feed).table.column_names == ["id", "vector"]
    with pytest.raises(longbow.FailedPrecondition):
        next(feed)


def test_the_schema_comes_first_also_where_nothing_is_to_be_told(wire, dataset) -> None:
    wire.put(dataset, rows(2))
    options = flight.FlightCallOptions(timeout=20)
    writer, reader = wire.data.do_exchange(flight.FlightDescriptor.for_command(b"sync"), options)
    request = {"last": 0, "dataset": dataset, "follow": True}
    writer.write_metadata(json.dumps(request).encode())
    writer.done_writing()
    assert reader.schema.names == rows(1).schema.names
    reader.cancel()


def test_a_name_that_was_used_before_is_not_mixed_up(client, dataset) -> None:
    client.insert(dataset, ROWS[:1])
    client.delete_dataset(dataset)
    client.insert(dataset, {"id": ["a"], "vector": [[1.0, 2.0, 3.0]]})
    told = list(client.changes(dataset))
    assert [change.kind for change in told] == ["create_dataset", "put"]
    assert ids(told[1]) == ["a"]


def test_an_unknown_dataset_or_key_is_refused(client, wire, dataset) -> None:
    with pytest.raises(longbow.NotFound, match=dataset):
        next(client.changes(dataset))
    for request in ({"form": 1}, {"from": 1, "last": 2}, {"follow": "yes"}):
        writer, reader = wire.data.do_exchange(flight.FlightDescriptor.for_command(b"sync"))
        writer.write_metadata(json.dumps(request).encode())
        writer.done_writing()
        with pytest.raises(pa.ArrowInvalid):
            reader.read_chunk()


def test_a_place_behind_the_end_of_the_log_is_refused(client, dataset) -> None:
    client.insert(dataset, {"id": [1], "vector": [[1.0, 2.0]]})
    end = max(change.sequence for change in client.changes())
    for follow in (False, True):
        with pytest.raises(longbow.FailedPrecondition, match="begin anew") as refused:
            next(iter(client.changes(since=end + 1_000_000, follow=follow)))
        assert refused.value.code == "ahead_of_log"


def test_what_was_purged_is_refused_and_a_follower_keeps_what_it_needs(mine) -> None:
    put_much(mine, 8)
    mine.snapshot()
    put_much(mine, 8)
    mine.snapshot()
    with pytest.raises(longbow.FailedPrecondition, match="begins at") as purged:
        next(mine.changes("d"))
    assert purged.value.code == "log_purged"
    last = max(change.sequence for change in mine.changes(since=_begins(purged.value)))
    with mine.changes("d", since=last, follow=True) as feed:
        # It is not read: the transport takes some, the log must keep the rest.
        for _ in range(2):
            put_much(mine, 20)
            mine.snapshot()
        told = [next(feed) for _ in range(41)]
    assert [change.sequence for change in told] == list(range(last, last + 41))


def put_much(client: longbow.LongbowClient, count: int) -> None:
    """Entries of half a megabyte."""
    vectors = np.zeros((500, 256), "float32")
    for _ in range(count):
        client.insert("d", {"id": range(500), "vector": vectors})


def _begins(error: longbow.FailedPrecondition) -> int:
    return int(error.message.split("begins at ")[1].split(";")[0])


def test_a_node_that_stops_ends_its_feeds_and_says_where_to_go_on(own, mine) -> None:
    mine.insert("d", ROWS[:1])
    feed = mine.changes("d", follow=True)
    last = [next(feed) for _ in range(2)][1].sequence
    assert own.stop() == 0
    with pytest.raises(longbow.Unavailable, match=f"from sequence {last + 1} ") as stopped:
        next(feed)
    assert stopped.value.code == "node_stopped"


def test_a_follower_that_does_not_read_does_not_keep_a_node_from_stopping(own, mine) -> None:
    put_much(mine, 60)
    feed = mine.changes("d", follow=True)
    assert [next(feed).kind for _ in range(2)] == ["create_dataset", "put"]
    assert own.stop() == 0


def test_a_follower_may_be_closed_while_it_waits(client, dataset) -> None:
    client.insert(dataset, ROWS[:1])
    feed = client.changes(dataset, follow=True)
    for _ in range(2):
        next(feed)
    ended = []

    def wait() -> None:
        try:
            next(feed)
        except (longbow.Cancelled, StopIteration) as error:
            ended.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    feed.close()
    waiting.join(timeout=30)
    assert len(ended) == 1


def test_a_task_that_follows_can_be_cancelled(server, dataset) -> None:
    async def body() -> list:
        seen = asyncio.Queue()
        async with longbow.AsyncLongbowClient(server.uri, server.meta_uri) as client:

            async def follow() -> None:
                async for change in client.changes(dataset, follow=True):
                    await seen.put(change.kind)

            await client.insert(dataset, ROWS[:1])
            task = asyncio.create_task(follow())
            told = [await seen.get() for _ in range(2)]
            await client.delete(dataset, 0)
            told.append(await seen.get())
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return told

    assert asyncio.run(body()) == ["create_dataset", "put", "delete"]


INTERRUPTED = """
import sys, longbow
client = longbow.connect(sys.argv[1], sys.argv[2])
try:
    for change in client.changes("d", follow=True):
        print(change.kind, flush=True)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_ends_the_waiting(own, mine) -> None:
    mine.insert("d", ROWS[:1])
    command = [sys.executable, "-c", INTERRUPTED, own.uri, own.meta_uri]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert [program.stdout.readline() for _ in range(2)] == ["create_dataset\n", "put\n"]
        program.send_signal(signal.SIGINT)
        assert program.communicate(timeout=30)[0] == "interrupted\n"


def test_the_program_follows_the_log_of_a_node(own, mine) -> None:
    command = [str(binary()), "log", "tail", "--uri", own.uri, "--follow", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tail:
        for n in range(3):
            mine.insert(f"d{n}", ROWS[:1])
            told = [json.loads(tail.stdout.readline()) for _ in range(2)]
            assert [entry["kind"] for entry in told] == ["create_dataset", "put"]
            assert [entry["subject"] for entry in told] == [f"d{n}"] * 2
            assert [entry["index"] for entry in told] == [2 * n + 1, 2 * n + 2]
        tail.send_signal(signal.SIGINT)
        assert tail.wait(timeout=30) == 0
