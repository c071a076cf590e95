"""The threads that write and read until the server is killed under them."""

from __future__ import annotations

import itertools
import json
import random
import threading
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from .model import Model, delete, delete_group, put
from .rows import GROUPS, KEYS, KINDS, Kind


class Load:
    """What the threads of one round share."""

    def __init__(self, addresses: dict[str, str], late: bool) -> None:
        self.addresses, self.late = addresses, late
        # Set before the server is told to end: from then on calls may fail.
        self.ending = threading.Event()
        self.errors: list[str] = []
        self.counts: dict[str, int] = {}

    def connect(self, side: str = "data") -> flight.FlightClient:
        """A connection of the caller's own."""
        return flight.connect(f"grpc+tcp://{self.addresses[side]}")

    def run(self, body: Any) -> None:
        """Calls `body` until the end; an error before it is one of the server's."""
        try:
            while not self.ending.is_set():
                body()
        except (flight.FlightError, pa.ArrowException) as error:
            if not self.ending.is_set():
                self.errors.append(f"{type(error).__name__}: {error}"[:500])

    def count(self, what: str) -> None:
        """Counts something that was done."""
        self.counts[what] = self.counts.get(what, 0) + 1


def act(client: flight.FlightClient, name: str, body: Any = None) -> bytes:
    """Calls an action that has one result."""
    payload = b"" if body is None else json.dumps(body).encode()
    (result,) = client.do_action(flight.Action(name, payload))
    return result.body.to_pybytes()


class Worker(threading.Thread):
    """A thread of the load with a connection and dice of its own, which takes steps until the end."""

    def __init__(self, name: str, load: Load, seed: int) -> None:
        super().__init__(name=name)
        self.load = load
        self.rng = random.Random(seed)
        self.client = load.connect()

    def run(self) -> None:
        """Goes on until the end."""
        self.load.run(self.step)

    def step(self) -> None:
        """One piece of work."""
        raise NotImplementedError


class Writer(Worker):
    """Writes rows that nobody else writes, one call after the other, and notes what was acknowledged."""

    versions = itertools.count(1)

    def __init__(self, load: Load, owner: int, models: dict[str, Model], seed: int) -> None:
        super().__init__(f"writer-{owner}", load, seed)
        self.owner, self.models = owner, models

    def step(self) -> None:
        """One call."""
        kind = self.rng.choice(KINDS)
        model = self.models[kind.name]
        choice = self.rng.random()
        if choice < 0.7 or not model.rows:
            self.put(kind, model)
        elif choice < 0.9:
            self.delete(kind, model)
        else:
            number = self.rng.randrange(GROUPS)
            filters = [
                {"field": "owner", "operator": "=", "value": self.owner},
                {"field": "group", "operator": "eq", "value": str(number)},
            ]
            model.send(delete_group(number))
            act(self.client, "delete", {"dataset": kind.name, "filters": filters})
            model.acknowledge()

    def put(self, kind: Kind, model: Model) -> None:
        """One stream of batches, all of them sent before the first acknowledgement is read."""
        late = self.load.late and self.rng.random() < 0.3
        batches = [self.rows(late) for _ in range(self.rng.choice([1, 1, 2, 6]))]
        model.send(*(put(rows) for rows in batches))
        model.written.extend(row for rows in batches for row in rows[-50:])
        descriptor = flight.FlightDescriptor.for_path(kind.name)
        writer, reader = self.client.do_put(descriptor, kind.schema(late))
        try:
            for rows in batches:
                writer.write_batch(kind.batch(rows, late))
            writer.done_writing()
            for rows in batches:
                told = reader.read()
                if told is None:
                    raise flight.FlightInternalError("the stream ended without an acknowledgement")
                if json.loads(told.to_pybytes())["rows"] != len(rows):
                    self.load.errors.append(f"{told.to_pybytes()!r} for {len(rows)} rows")
                model.acknowledge()
        finally:
            writer.close()

    def rows(self, late: bool) -> list[tuple[int, int]]:
        """Keys and new versions; few or many, and some keys twice. Large batches go other ways than small ones."""
        count = self.rng.choices([1, 3, 30, 200, 3_000, 60_000], [24, 24, 24, 24, 4, 0.3])[0]
        first = self.owner * KEYS
        keys = [first + self.rng.randrange(KEYS) for _ in range(count)]
        return [(key, next(self.versions) * 2 + late) for key in keys]

    def delete(self, kind: Kind, model: Model) -> None:
        """Rows by id."""
        keys = self.rng.sample(list(model.rows), min(len(model.rows), self.rng.choice([1, 20])))
        model.send(delete(keys))
        act(self.client, "delete", {"dataset": kind.name, "ids": [kind.id(key) for key in keys]})
        model.acknowledge()


class Dropper(Worker):
    """Creates a dataset, fills and drops it, over and over."""

    def __init__(self, load: Load, model: Model, seed: int) -> None:
        super().__init__("dropper", load, seed)
        self.model = model

    def step(self) -> None:
        """One call. A state without any row is a dataset that is not there."""
        kind = TEMPORARY
        if self.model.rows and self.rng.random() < 0.5:
            self.model.send(lambda state: state.clear())
            act(self.client, "delete-dataset", {"dataset": kind.name})
            self.model.acknowledge()
            return
        rows = [(key, next(Writer.versions) * 2) for key in range(self.rng.randrange(1, 50))]
        self.model.send(put(rows))
        descriptor = flight.FlightDescriptor.for_path(kind.name)
        writer, reader = self.client.do_put(descriptor, kind.schema(False))
        try:
            writer.write_batch(kind.batch(rows, False))
            writer.done_writing()
            if reader.read() is None:
                raise flight.FlightInternalError("the stream ended without an acknowledgement")
            self.model.acknowledge()
        finally:
            writer.close()


TEMPORARY = Kind("temporary", False, "int8", 4, "dot_product")


class Snapshots(Worker):
    """Asks for checkpoints at random moments."""

    def __init__(self, load: Load, seed: int) -> None:
        super().__init__("snapshots", load, seed)

    def step(self) -> None:
        """One checkpoint, and a pause."""
        act(self.client, "ForceSnapshot")
        self.load.count("checkpoints")
        self.load.ending.wait(self.rng.choice([0.0, 0.05, 0.3]))


class Reader(Worker):
    """Scans and searches beside the writers: whatever a scan holds, it holds once and whole."""

    def __init__(self, load: Load, seed: int) -> None:
        super().__init__("reader", load, seed)

    def step(self) -> None:
        """One scan and one search of a dataset, once it is there."""
        kind = self.rng.choice(KINDS)
        query = [self.rng.randrange(-8, 8) for _ in range(kind.dim)]
        search = {"search": {"dataset": kind.name, "vector": query, "k": 10}}
        for ticket in (kind.name, json.dumps(search)):
            try:
                table = self.client.do_get(flight.Ticket(ticket.encode())).read_all()
            except pa.ArrowException as error:
                if "dataset_not_found" in str(error):
                    return
                raise
            ids = table["id"].to_pylist()
            if len(ids) != len(set(ids)):
                self.load.errors.append(f"{ticket}: an id is there twice")
            self.load.count("reads")
