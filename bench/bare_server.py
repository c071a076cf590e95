"""A bare Flight server: the yardstick for the wire.

It keeps the batches it is given in memory and streams them back, and does nothing else: no check, no log,
no index. What a pyarrow client reaches against it is what Flight itself allows on this machine.

    python bench/bare_server.py          prints `bare ready data=127.0.0.1:PORT` and serves until ended
"""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.flight as flight


class BareServer(flight.FlightServerBase):
    """Tables by name, in memory."""

    def __init__(self) -> None:
        super().__init__("grpc://127.0.0.1:0")
        self.tables: dict[str, pa.Table] = {}

    def do_put(self, context, descriptor, reader, writer) -> None:
        """Keeps all batches, and answers each as Longbow does: with a small JSON."""
        batches: list[pa.RecordBatch] = []
        rows = 0
        for chunk in reader:
            batches.append(chunk.data)
            rows += chunk.data.num_rows
            ack = {"offset": rows, "rows": chunk.data.num_rows, "durable": False, "searchable": False}
            writer.write(pa.py_buffer(json.dumps(ack).encode()))
        self.tables[descriptor.path[0].decode()] = pa.Table.from_batches(batches, reader.schema)

    def do_get(self, context, ticket) -> flight.RecordBatchStream:
        """Streams a table's batches as they came."""
        name = ticket.ticket.decode()
        if name not in self.tables:
            raise KeyError(f"no table {name}")
        return flight.RecordBatchStream(self.tables[name])

    def do_action(self, context, action) -> list[flight.Result]:
        """`delete-dataset` forgets a table."""
        if action.type != "delete-dataset":
            raise NotImplementedError(action.type)
        self.tables.pop(json.loads(action.body.to_pybytes())["dataset"], None)
        return [flight.Result(b"deleted")]


if __name__ == "__main__":
    server = BareServer()
    print(f"bare ready data=127.0.0.1:{server.port}", flush=True)
    server.serve()
