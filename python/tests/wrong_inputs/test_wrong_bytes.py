"""Arrow messages that no writer makes: values, offsets, headers and frames that are wrong."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.flight as flight
import pytest
from proxy import Change, Proxy, swapped
from wire import rows
from wrong import COMMAND, GOOD, PATH, Target, Wrong, check_text, exchange, state


def ints(*values: int, width: int = 4) -> bytes:
    """Numbers as they lie in a buffer."""
    return b"".join(value.to_bytes(width, "little", signed=True) for value in values)


def named(*names: str) -> pa.RecordBatch:
    """Rows for the good dataset with these names."""
    return rows(len(names), 100).set_column(2, "name", pa.array(names))


def with_ids(*ids: str) -> pa.RecordBatch:
    return rows(len(ids), 100).set_column(0, "id", pa.array(ids))


# Lengths that stand for themselves: their offsets lie nowhere else in the message.
NAMES = named("a" * 77, "b" * 55)
NAME_OFFSETS = ints(0, 77, 132)
IDS = with_ids("a" * 77, "b" * 55)
LISTS = rows(2, 100).append_column("list", pa.array([[7] * 77, [7] * 55]))
KEYS = pa.DictionaryArray.from_arrays(pa.array([0, 1, 1, 0, 1], pa.int32()), pa.array(["a", "b"]))
WORDS = rows(5, 100).append_column("kind", KEYS)
WORD_KEYS = ints(0, 1, 1, 0, 1)

#: Where to, a good batch, bytes of it and what comes in their place, what the text names.
VALUES = {
    "a string that is no UTF-8": (GOOD, NAMES, b"a" * 77, b"a" * 75 + b"\xff\xfe", "'name'"),
    "half a character": (GOOD, NAMES, b"b" * 55, b"b" * 54 + b"\xe2", "'name'"),
    "offsets beyond the data": (GOOD, NAMES, NAME_OFFSETS, ints(0, 77, 1_000_000), "'name'"),
    "offsets that go back": (GOOD, NAMES, NAME_OFFSETS, ints(0, 140, 132), "'name'"),
    "negative offsets": (GOOD, NAMES, NAME_OFFSETS, ints(0, -77, 132), "'name'"),
    "offsets that begin below": (GOOD, NAMES, NAME_OFFSETS, ints(-9, 77, 132), "'name'"),
    "an id that is no UTF-8": ("newtext", IDS, b"a" * 77, b"a" * 75 + b"\xff\xfe", "'id'"),
    "offsets of ids beyond the data": ("newtext", IDS, NAME_OFFSETS, ints(0, 77, 999), "'id'"),
    "lists beyond their elements": ("newlist", LISTS, NAME_OFFSETS, ints(0, 77, 9999), "'list'"),
    "lists that go back": ("newlist", LISTS, NAME_OFFSETS, ints(0, 132, 77), "'list'"),
    "a key beyond its dictionary": ("newwords", WORDS, WORD_KEYS, ints(0, 1, 5, 0, 1), "'kind'"),
    "a negative key": ("newwords", WORDS, WORD_KEYS, ints(0, 1, -5, 0, 1), "'kind'"),
}


def check_changed(target: Target, change: Change, wrong: Wrong) -> None:
    """As ``Target.check_refused``, but by way of a relay that changes bytes."""
    before = state(target.wire)
    with Proxy(target.server.data, change) as wire:
        with pytest.raises((pa.ArrowException, flight.FlightError)) as caught:
            wrong.call(wire)
    check_text(str(caught.value), wrong)
    assert state(target.wire) == before
    target.check_alive()


@pytest.mark.parametrize("name", VALUES)
def test_values_that_are_not_valid_are_refused(target: Target, name: str) -> None:
    dataset, batch, old, new, word = VALUES[name]
    put = Wrong(name, lambda wire: wire.put(dataset, batch), "bad_batch", (word,))
    check_changed(target, swapped(old, new), put)


@pytest.mark.parametrize("name", VALUES)
def test_an_exchange_refuses_them(target: Target, name: str) -> None:
    dataset, batch, old, new, word = VALUES[name]
    path = PATH("ingest", dataset)
    ingest = Wrong(name, lambda wire: exchange(wire, path, batch), "bad_batch", (word,))
    check_changed(target, swapped(old, new), ingest)


QUERY = pa.record_batch(
    {
        "dataset": [GOOD, GOOD],
        "k": pa.array([1, 1], pa.int32()),
        "query_vector": pa.array([[1.0] * 77, [1.0] * 55], pa.list_(pa.float32())),
    }
)
GOODS = (GOOD * 2).encode()
QUERIES = {
    "a query beyond its elements": (NAME_OFFSETS, ints(0, 77, 9999), "'query_vector'"),
    "queries that go back": (NAME_OFFSETS, ints(0, 132, 77), "'query_vector'"),
    "a name that is no UTF-8": (GOODS, b"\xff\xfe" + GOODS[2:], "'dataset'"),
    "names beyond their data": (ints(0, 4, 8), ints(0, 4, 9999), "'dataset'"),
}


@pytest.mark.parametrize("name", QUERIES)
def test_queries_that_are_not_valid_are_refused(target: Target, name: str) -> None:
    old, new, word = QUERIES[name]
    command = COMMAND(b"VectorSearch")
    search = Wrong(name, lambda wire: exchange(wire, command, QUERY), "bad_batch", (word,))
    check_changed(target, swapped(old, new), search)


BATCH = rows(3, 500)
#: The flatbuffers of the schema and of the batch, without the frame that a file has around them.
SCHEMA_HEADER = BATCH.schema.serialize().to_pybytes()[8:]
BATCH_HEADER = pa.ipc.read_message(BATCH.serialize()).metadata.to_pybytes()


def changed(header: bytes, at: int, to: bytes) -> Change:
    """Writes other bytes into a header on its way."""
    return swapped(header, header[:at] + to + header[at + len(to) :])


ROWS_AT = BATCH_HEADER.index(ints(3, width=8))
BODY_LENGTH = len(pa.ipc.read_message(BATCH.serialize()).body)
BODY_AT = BATCH_HEADER.index(ints(BODY_LENGTH, width=8))

#: What the relay changes, the stable code, what the text names.
HEADERS = {
    "a schema of garbage": (changed(SCHEMA_HEADER, 0, b"\xff" * 40), ["message header"]),
    "a schema of zeros": (changed(SCHEMA_HEADER, 0, bytes(len(SCHEMA_HEADER))), ["message"]),
    "a batch of garbage": (changed(BATCH_HEADER, 0, b"\xa5" * 40), ["message header"]),
    "a batch of zeros": (changed(BATCH_HEADER, 0, bytes(len(BATCH_HEADER))), ["message"]),
    "a batch that is cut to its start": (changed(BATCH_HEADER, 16, b"\0" * 16), ["message"]),
    "more rows than there are": (
        changed(BATCH_HEADER, ROWS_AT, ints(1000, width=8)),
        ["'id'", "1000"],
    ),
    "rows below zero": (changed(BATCH_HEADER, ROWS_AT, ints(-3, width=8)), ["-3 rows"]),
    "rows beyond all bounds": (changed(BATCH_HEADER, ROWS_AT, ints(1 << 62, width=8)), ["rows"]),
    "another length of the body": (
        changed(BATCH_HEADER, BODY_AT, ints(8, width=8)),
        ["8 bytes", str(BODY_LENGTH)],
    ),
}


@pytest.mark.parametrize("name", HEADERS)
def test_headers_that_are_not_valid_are_refused(target: Target, name: str) -> None:
    change, words = HEADERS[name]
    put = Wrong(name, lambda wire: wire.put(GOOD, BATCH), "bad_batch", tuple(words))
    check_changed(target, change, put)


def test_a_header_with_any_byte_changed_never_harms(target: Target) -> None:
    # A changed byte may be harmless; what matters is that the server takes it or says so.
    refusals = 0
    for at in range(0, len(BATCH_HEADER), 5):
        byte = bytes([BATCH_HEADER[at] ^ (1 << at % 8)])
        with Proxy(target.server.data, changed(BATCH_HEADER, at, byte)) as wire:
            try:
                wire.put("changed", BATCH)
            except (pa.ArrowException, flight.FlightError) as error:
                assert "bad_batch: " in str(error) or "null_value: " in str(error), error
                refusals += 1
    target.check_alive()
    assert refusals > 0
    names = [info.descriptor.path for info in target.wire.meta.list_flights()]
    if [b"changed"] in names:
        assert target.wire.get("changed").schema.names == BATCH.schema.names
        target.wire.act("delete-dataset", {"dataset": "changed"})


DESCRIPTOR = flight.FlightDescriptor.for_path("d" * 40).serialize()
FRAMES = {
    "a descriptor of garbage": (DESCRIPTOR, b"\xff" * len(DESCRIPTOR), "descriptor"),
    "a field that is longer than its message": (
        bytes([0x0A, len(DESCRIPTOR)]) + DESCRIPTOR,
        b"\x0a\xff\x7f" + DESCRIPTOR[1:],
        "longer than its message",
    ),
}


@pytest.mark.parametrize("name", FRAMES)
def test_messages_that_are_not_flights_are_refused(target: Target, name: str) -> None:
    old, new, word = FRAMES[name]
    put = Wrong(name, lambda wire: wire.put("d" * 40, BATCH), "bad_message", (word,))
    check_changed(target, swapped(old, new), put)
