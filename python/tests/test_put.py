"""A put against a server that misbehaves: nothing hangs, nothing is glossed over."""

import json
import re

import numpy as np
import pyarrow as pa
import pytest
from double import Double

import longbow

MATRIX = np.zeros((10, 4), "f4")


@pytest.fixture
def server():
    with Double() as double:
        yield double


@pytest.fixture
def puts(server: Double):
    with longbow.LongbowClient(server.uri, server.uri) as client:
        yield client


def test_acknowledgements_are_added_up(server, puts) -> None:
    result = puts.insert("d", MATRIX, batch_size=4)
    assert (result.rows, result.batches, result.offset) == (10, 3, 3)
    assert (result.durable, result.replicated, result.searchable) == (True, 1, True)
    assert result.slow_downs == 0
    assert result.bytes == sum(batch.nbytes for batch in server.batches)
    assert pa.Table.from_batches(server.batches)["id"].to_pylist() == list(range(10))


def test_one_weak_acknowledgement_weakens_the_whole(server, puts) -> None:
    server.acknowledge = lambda number, rows: json.dumps(
        {
            "offset": number,
            "rows": rows,
            "durable": number != 2,
            "searchable": number != 1,
            **({"status": "slow_down", "reason": "wal_pressure"} if number > 1 else {}),
        }
    ).encode()
    result = puts.insert("d", MATRIX, batch_size=4)
    assert (result.durable, result.searchable, result.slow_downs) == (False, False, 2)


def test_rows_that_were_not_acknowledged_are_not_reported_as_inserted(server, puts) -> None:
    whole = server.acknowledge
    server.acknowledge = lambda number, rows: None if number == 2 else whole(number, rows)
    with pytest.raises(longbow.Internal, match="10 rows were sent to 'd' and 6 acknowledged"):
        puts.insert("d", MATRIX, batch_size=4)


def test_an_acknowledgement_that_is_not_json(server, puts) -> None:
    server.acknowledge = lambda number, rows: b"\xff nonsense"
    with pytest.raises(longbow.Internal, match="acknowledgement is not JSON"):
        puts.insert("d", MATRIX)


def test_large_acknowledgements_cannot_block_a_long_put(server, puts) -> None:
    # Together they exceed every window of the transport: were they not read
    # while batches are written, both sides would wait for each other.
    whole = server.acknowledge
    server.acknowledge = lambda number, rows: whole(number, rows) + b" " * 100_000
    result = puts.insert("d", iter([MATRIX] * 300))
    assert (result.rows, result.batches) == (3000, 300)


def test_a_refusal_in_the_middle_arrives_with_its_text(server, puts) -> None:
    server.error, server.error_after = pa.ArrowInvalid("bad_row: number 7"), 3
    with pytest.raises(longbow.InvalidArgument) as caught:
        puts.insert("d", iter([MATRIX] * 1000))
    told = "number 7; (at least the first [123]0|the first 30) rows of this insert are written, and"
    assert caught.value.code == "bad_row"
    assert re.match(told, caught.value.message), caught.value.message


def test_a_fault_of_the_callers_own_arrives_as_it_is(server, puts) -> None:
    def source():
        yield MATRIX
        raise RuntimeError("the file is gone")

    with pytest.raises(RuntimeError, match="the file is gone"):
        puts.insert("d", source())
    assert sum(batch.num_rows for batch in server.batches) == 10


def test_nothing_at_all_is_refused_without_a_call(server, puts) -> None:
    with pytest.raises(longbow.InvalidArgument, match="nothing to insert"):
        puts.insert("d", iter([]))
    with pytest.raises(longbow.InvalidArgument, match="at least 1"):
        puts.insert("d", MATRIX, batch_size=0)


def test_progress_ends_at_the_total(puts) -> None:
    told = []
    puts.insert("d", MATRIX, batch_size=4, progress=lambda rows, total: told.append((rows, total)))
    assert told == [(4, 10), (8, 10), (10, 10), (10, 10)]
