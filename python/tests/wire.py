"""The contract spoken with pyarrow alone: what any client may write, without the SDK."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight
import pytest


class Wire:
    """Both servers, and the few calls that every test makes."""

    def __init__(self, data: str, meta: str) -> None:
        self.data = flight.connect(f"grpc+tcp://{data}")
        self.meta = flight.connect(f"grpc+tcp://{meta}")

    def put(self, dataset: str, *batches: pa.RecordBatch) -> list[dict[str, Any]]:
        """Puts batches; the acknowledgements."""
        descriptor = flight.FlightDescriptor.for_path(dataset)
        writer, reader = self.data.do_put(descriptor, batches[0].schema)
        told = []
        with writer:
            for batch in batches:
                writer.write_batch(batch)
            writer.done_writing()
            while (message := reader.read()) is not None:
                told.append(json.loads(message.to_pybytes()))
        return told

    def get(self, ticket: str | dict[str, Any], side: str = "data") -> pa.Table:
        """The table that a ticket stands for."""
        text = ticket if isinstance(ticket, str) else json.dumps(ticket)
        return getattr(self, side).do_get(flight.Ticket(text.encode())).read_all()

    def search(self, dataset: str, **keys: Any) -> pa.Table:
        """A search ticket's table."""
        return self.get({"search": {"dataset": dataset, **keys}})

    def act(self, name: str, body: Any = None, side: str = "data") -> list[bytes]:
        """An action's results."""
        payload = b"" if body is None else json.dumps(body).encode()
        results = getattr(self, side).do_action(flight.Action(name, payload))
        return [result.body.to_pybytes() for result in results]

    def act_json(self, name: str, body: Any = None, side: str = "data") -> Any:
        """An action's one result, from JSON."""
        (result,) = self.act(name, body, side)
        return json.loads(result)


def rows(count: int, start: int = 0) -> pa.RecordBatch:
    """``count`` rows: id n, vector [n, 1], name "name-n", year 2000 + n % 10."""
    numbers = range(start, start + count)
    flat = pa.array([float(x) for n in numbers for x in (n, 1)], pa.float32())
    return pa.record_batch(
        {
            "id": pa.array(numbers, pa.int64()),
            "vector": pa.FixedSizeListArray.from_arrays(flat, 2),
            "name": pa.array([f"name-{n}" for n in numbers]),
            "year": pa.array([2000 + n % 10 for n in numbers], pa.int32()),
        }
    )


def refused(kind: type, *words: str) -> Any:
    """Expects an Arrow exception that holds all of ``words`` in its text."""
    pattern = "(?s)" + "".join(f"(?=.*{word})" for word in words)
    return pytest.raises(kind, match=pattern)
