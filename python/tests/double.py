"""A Flight server in this process that misbehaves on purpose.

The real server can't be made to send half of its acknowledgements, or an error
of every kind; this one can.
"""

from __future__ import annotations

import atexit
import json
import threading

import pyarrow as pa
import pyarrow.flight as flight


class Double(flight.FlightServerBase):
    """Does as ``puts``, ``error`` and ``told`` say; a context manager."""

    def __init__(self) -> None:
        super().__init__("grpc+tcp://127.0.0.1:0")
        #: The acknowledgement of each batch, by its number: bytes, or None for none.
        self.acknowledge = lambda number, rows: json.dumps(
            {"offset": number, "rows": rows, "durable": True, "replicated": 1, "searchable": True}
        ).encode()
        #: Raised by every call, and by a put after ``error_after`` batches.
        self.error: Exception | None = None
        self.error_after = 0
        self.headers: list[dict[str, list[str]]] = []
        self.batches: list[pa.RecordBatch] = []
        self.actions: list[tuple[str, bytes]] = []
        self.replies: dict[str, list[bytes]] = {}

    @property
    def uri(self) -> str:
        return f"grpc://127.0.0.1:{self.port}"

    def __exit__(self, *_: object) -> None:
        # Shutting down waits for calls in flight; nobody has to wait for it.
        thread = threading.Thread(target=self.shutdown, daemon=True)
        thread.start()
        # But the interpreter's end, which must not find it in pyarrow.
        atexit.register(thread.join, 5)

    def get_schema(self, context, descriptor):
        # As of a dataset that the put is to create.
        raise KeyError("dataset_not_found: none is here yet")

    def do_put(self, context, descriptor, reader, writer) -> None:
        for number, chunk in enumerate(reader, 1):
            self.batches.append(chunk.data)
            told = self.acknowledge(number, chunk.data.num_rows)
            if told is not None:
                writer.write(told)
            if self.error is not None and number >= self.error_after:
                raise self.error

    def do_action(self, context, action):
        self.actions.append((action.type, action.body.to_pybytes()))
        if self.error is not None:
            raise self.error
        return iter(self.replies.get(action.type, [b"{}"]))

    def do_exchange(self, context, descriptor, reader, writer) -> None:
        begun = False
        for chunk in reader:
            self.batches.append(chunk.data)
            if self.error is not None and len(self.batches) >= self.error_after:
                raise self.error
            if not begun:
                writer.begin(chunk.data.schema)
                begun = True
            writer.write_batch(chunk.data)


class SeesHeaders(flight.ServerMiddlewareFactory):
    """Records the headers of every call."""

    def __init__(self) -> None:
        self.seen: list[dict[str, list[str]]] = []

    def start_call(self, info, headers):
        self.seen.append(dict(headers))
        return None
