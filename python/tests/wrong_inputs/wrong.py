"""A wrong input and what must hold: what is said, that nothing changed, that life goes on."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight
import pytest
from server import Server
from wire import Wire, rows

PATH = flight.FlightDescriptor.for_path
COMMAND = flight.FlightDescriptor.for_command

#: The gRPC statuses as pyarrow puts them into its texts.
INVALID = "invalid argument"
NOT_FOUND = "not found"
UNIMPLEMENTED = "unimplemented"
EXHAUSTED = "resource exhausted"

#: The dataset that wrong inputs are aimed at, and how many rows it has.
GOOD, GOOD_ROWS = "good", 10
#: What the check that the server is alive writes to.
ALIVE = "alive"

_STATUS = re.compile(
    r"(?:Flight|gRPC) returned (?P<status>[a-z -]+?) error, with message: "
    r"(?P<code>[a-z_]+): (?P<text>.*?)(?:\. gRPC client debug context: |\Z)",
    re.DOTALL,
)
#: A remedy is what follows a semicolon, or says what was expected.
_REMEDY = re.compile(r"; (?!got )\w|expected|did you mean")


@dataclass(frozen=True)
class Wrong:
    """A call that must be refused; ``words`` are the wrong value and what else the text names."""

    name: str
    call: Callable[[Wire], Any]
    code: str
    words: tuple[str, ...]
    status: str = INVALID

    def __str__(self) -> str:
        return self.name


def each(*table: Wrong) -> pytest.MarkDecorator:
    """Runs a test, whose argument is ``wrong``, for each row of a table."""
    names = [wrong.name for wrong in table]
    assert len(set(names)) == len(names), "two rows of the table have one name"
    return pytest.mark.parametrize("wrong", table, ids=str)


@dataclass
class Target:
    """A server with a dataset that wrong inputs are aimed at."""

    server: Server
    puts: int = 0

    def __post_init__(self) -> None:
        self.wire = Wire(self.server.data, self.server.meta)

    def fill(self) -> Target:
        """Makes the dataset that wrong inputs are aimed at, and the other one."""
        self.wire.put(GOOD, rows(GOOD_ROWS))
        self.check_alive()
        return self

    def check_refused(self, wrong: Wrong) -> str:
        """Makes the call and checks all that must hold; the text of the error."""
        offset = self.check_alive()
        before = state(self.wire)
        with pytest.raises((pa.ArrowException, flight.FlightError, KeyError)) as caught:
            wrong.call(self.wire)
        text = check_text(str(caught.value), wrong)
        assert state(self.wire) == before
        # What is acknowledged next takes the very next place in the log, so nothing was written.
        assert self.check_alive() == offset + 1
        return text

    def check_alive(self) -> int:
        """A good put and a search that finds what was put; the put's place in the log."""
        number, self.puts = self.puts, self.puts + 1
        (told,) = self.wire.put(ALIVE, rows(1, number))
        assert told["rows"] == 1
        found = self.wire.search(ALIVE, vector=[float(number), 1.0], k=1)
        assert found["id"].to_pylist() == [number]
        found = self.wire.search(GOOD, vector=[3.0, 1.0], k=2, include_vectors=True)
        assert found["vector"].to_pylist()[0] == [3.0, 1.0]
        return told["offset"]


def check_text(text: str, wrong: Wrong) -> str:
    """Checks status, stable code, the words and that there is a remedy; the text of the server."""
    told = _STATUS.search(text)
    assert told is not None, f"no status and stable code in: {text}"
    assert (told["status"], told["code"]) == (wrong.status, wrong.code), text
    for word in wrong.words:
        assert word in told["text"], text
    assert _REMEDY.search(told["text"]), f"no remedy in: {text}"
    return told["text"]


def state(wire: Wire) -> dict[str, Any]:
    """All that a client can see: datasets with schemas and rows, and namespaces."""
    names = [info.descriptor.path[0].decode() for info in wire.meta.list_flights()]
    tables = {name: wire.get({"name": name}) for name in names}
    listed = {name: wire.meta.get_schema(PATH(name)).schema for name in names}
    return {
        "schemas": {name: schema.serialize().to_pybytes() for name, schema in listed.items()},
        "rows": {name: table.to_pylist() for name, table in tables.items()},
        "records": {n: wire.meta.get_flight_info(PATH(n)).total_records for n in names},
        "namespaces": wire.act_json("ListNamespaces", side="meta"),
    }


def put_schema(wire: Wire, dataset: str, schema: pa.Schema) -> None:
    """A put without a batch, which creates a dataset where the schema is good."""
    writer, reader = wire.data.do_put(PATH(dataset), schema)
    with writer:
        writer.done_writing()
        while reader.read() is not None:
            pass


def raw_get(wire: Wire, ticket: bytes, side: str = "data") -> pa.Table:
    """The table for a ticket of any bytes."""
    return getattr(wire, side).do_get(flight.Ticket(ticket)).read_all()


def raw_act(wire: Wire, name: str, body: bytes, side: str = "data") -> list[flight.Result]:
    """An action with a body of any bytes."""
    return list(getattr(wire, side).do_action(flight.Action(name, body)))


def exchange(wire: Wire, descriptor: flight.FlightDescriptor, *batches: pa.RecordBatch) -> list:
    """Writes batches into an exchange and reads all that comes back."""
    writer, reader = wire.data.do_exchange(descriptor)
    with writer:
        writer.begin(batches[0].schema)
        for batch in batches:
            writer.write_batch(batch)
        writer.done_writing()
        return list(reader)
