"""Streams into a dataset that are wrong around their rows: descriptors, names, sizes, ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.flight as flight
import pytest
from proxy import Proxy, cut_after, swapped
from server import Server
from wire import Wire, rows
from wrong import (
    COMMAND,
    GOOD,
    PATH,
    Target,
    Wrong,
    each,
    exchange,
    put_schema,
    raw_act,
    raw_get,
)


def put(descriptor: flight.FlightDescriptor) -> Callable[[Wire], None]:
    """A good batch under this descriptor."""

    def call(wire: Wire) -> None:
        writer, reader = wire.data.do_put(descriptor, rows(1).schema)
        with writer:
            writer.write_batch(rows(1))
            writer.done_writing()
            while reader.read() is not None:
                pass

    return call


DESCRIPTORS = [
    Wrong("a command", put(COMMAND(b"good")), "wrong_descriptor", ("CMD", "'good'", "PATH")),
    Wrong(
        "a command that is no text",
        put(COMMAND(b"\xff\xfe")),
        "wrong_descriptor",
        ("CMD", "PATH"),
    ),
    Wrong("an empty path", put(PATH()), "wrong_descriptor", ("path", "0 elements", "one")),
    Wrong(
        "a path of two",
        put(PATH("good", "better")),
        "wrong_descriptor",
        ("2 elements", "good/better", "one"),
    ),
]


@each(*DESCRIPTORS)
def test_descriptors_that_name_no_dataset_are_refused(target: Target, wrong: Wrong) -> None:
    target.check_refused(wrong)


def test_a_stream_without_a_descriptor_is_refused(target: Target) -> None:
    # The descriptor's field becomes one that the format does not have.
    name = b"nodescriptor"
    there = flight.FlightDescriptor.for_path(name).serialize()
    field = bytes([0x0A, len(there)]) + there
    with Proxy(target.server.data, swapped(field, b"\x7a" + field[1:])) as wire:
        call = put(PATH(name))
        target.check_refused(Wrong("none", lambda _: call(wire), "no_descriptor", ("PATH",)))


BAD_NAMES = {
    "empty": ("", "it is empty"),
    "like JSON": ("{x", "'{x'"),
    "up a folder": ("../x", "'../x'"),
    "up a folder, later": ("a/../../x", "'a/../../x'"),
    "absolute": ("/x", "'/x'"),
    "a folder": ("x/", "'x/'"),
    "300 characters": ("x" * 300, "xxxxxxxx"),
    "100 characters of 3 bytes": ("\u20ac" * 100, "\u20ac"),
    "a line break": ("a\nb", "control character"),
    "a zero": ("a\0b", "control character"),
    "an escape sequence": ("\x1b[31m", "control character"),
}


def named(call: Callable[[Wire, str], object]) -> list[Wrong]:
    def case(name: str) -> Wrong:
        bad, word = BAD_NAMES[name]
        return Wrong(name, lambda wire: call(wire, bad), "bad_name", (word, "255"))

    return [case(name) for name in BAD_NAMES]


@each(*named(lambda wire, name: wire.put(name, rows(1))))
def test_bad_names_are_refused_with_a_row(target: Target, wrong: Wrong) -> None:
    target.check_refused(wrong)


@each(*named(lambda wire, name: put_schema(wire, name, rows(1).schema)))
def test_bad_names_are_refused_with_a_schema_alone(target: Target, wrong: Wrong) -> None:
    target.check_refused(wrong)


@each(*named(lambda wire, name: exchange(wire, PATH("ingest", name), rows(1))))
def test_bad_names_are_refused_by_an_exchange(target: Target, wrong: Wrong) -> None:
    target.check_refused(wrong)


@each(*named(lambda wire, name: wire.act("CreateNamespace", {"name": name}, "meta")))
def test_bad_names_are_no_namespaces(target: Target, wrong: Wrong) -> None:
    target.check_refused(wrong)


def test_control_characters_of_a_name_do_not_reach_the_text(target: Target) -> None:
    bad = Wrong("escape", lambda wire: wire.put("\x1b[31m\n", rows(1)), "bad_name", ())
    text = target.check_refused(bad)
    assert "\x1b" not in text and "\n" not in text


MEBIBYTE = 1 << 20


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A server that takes messages of at most 1 MiB."""
    path = tmp_path_factory.mktemp("small") / "data"
    server = Server(path, "--grpc-max-recv-msg-size", "1MiB")
    yield Target(server).fill()
    assert server.stop() == 0


def big() -> pa.RecordBatch:
    """A batch for the good dataset of about 2 MiB."""
    batch = rows(2, 100)
    return batch.set_column(2, "name", pa.array(["x" * MEBIBYTE] * 2))


def big_query() -> pa.RecordBatch:
    lists = pa.array([[0.0] * MEBIBYTE], pa.list_(pa.float32()))
    columns = {"dataset": [GOOD], "k": pa.array([1], pa.int32()), "query_vector": lists}
    return pa.record_batch(columns)


LARGE = [
    ("a put", lambda wire: wire.put(GOOD, big())),
    ("an ingest", lambda wire: exchange(wire, PATH("ingest", GOOD), big())),
    ("a query of an exchange", lambda wire: exchange(wire, COMMAND(b"VectorSearch"), big_query())),
    ("an action", lambda wire: raw_act(wire, "delete", b" " * 2 * MEBIBYTE)),
    ("a ticket", lambda wire: raw_get(wire, b" " * 2 * MEBIBYTE)),
    ("a ticket for the meta server", lambda wire: raw_get(wire, b" " * 2 * MEBIBYTE, "meta")),
]
LIMIT = (str(MEBIBYTE), "LONGBOW_GRPC_MAX_RECV_MSG_SIZE")


@each(*[Wrong(name, call, "message_too_large", LIMIT) for name, call in LARGE])
def test_messages_over_the_limit_are_refused(small: Target, wrong: Wrong) -> None:
    small.check_refused(wrong)


def test_batches_before_one_over_the_limit_stand(small: Target) -> None:
    two = Wrong("two", lambda wire: wire.put("before", rows(3), big()), "message_too_large", LIMIT)
    with pytest.raises(pa.ArrowInvalid, match=two.code):
        two.call(small.wire)
    assert small.wire.get("before").num_rows == 3


MARK = b"this is where the second batch begins"


def marked(count: int) -> pa.RecordBatch:
    """Rows of which the first name is a mark for the relay."""
    batch = rows(count, 100)
    names = [MARK.decode(), *["x" * 100] * (count - 1)]
    return batch.set_column(2, "name", pa.array(names))


def cut_put(wire: Wire, dataset: str) -> list[dict]:
    """A good batch that is acknowledged, then one that the relay cuts."""
    writer, reader = wire.data.do_put(PATH(dataset), rows(1).schema)
    writer.write_batch(rows(7))
    told = [json.loads(reader.read().to_pybytes())]
    with pytest.raises((pa.ArrowException, flight.FlightError)):
        with writer:
            writer.write_batch(marked(20_000))
            writer.done_writing()
            while (message := reader.read()) is not None:
                told.append(json.loads(message.to_pybytes()))
    return told


@pytest.mark.parametrize("count", [0, 1, 10_000, 1_000_000])
def test_a_cut_stream_leaves_what_was_acknowledged_and_no_half_batch(
    target: Target, count: int
) -> None:
    with Proxy(target.server.data, cut_after(MARK, count)) as wire:
        told = cut_put(wire, "cut")
    assert [one["rows"] for one in told] == [7]
    assert target.wire.get("cut")["id"].to_pylist() == list(range(7))
    target.wire.act("delete-dataset", {"dataset": "cut"})
    target.check_alive()


def test_a_stream_that_the_client_cancels_leaves_what_was_acknowledged(target: Target) -> None:
    writer, reader = target.wire.data.do_put(PATH("cancelled"), rows(1).schema)
    writer.write_batch(rows(7))
    assert json.loads(reader.read().to_pybytes())["rows"] == 7
    del reader
    with pytest.raises(pa.ArrowException):
        cancelled = flight.FlightCallOptions(timeout=0.001)
        writer, _ = target.wire.data.do_put(PATH("cancelled"), rows(1).schema, cancelled)
        for n in range(1000):
            writer.write_batch(rows(1000, 100 + n * 1000))
        writer.close()
    found = target.wire.get("cancelled")["id"].to_pylist()
    # Whole batches of a thousand, if any.
    assert found[:7] == list(range(7))
    assert found[7:] == list(range(100, 100 + len(found) - 7))
    assert (len(found) - 7) % 1000 == 0
    target.wire.act("delete-dataset", {"dataset": "cancelled"})
    target.check_alive()
