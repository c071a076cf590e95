"""Longbow's server, spoken to with pyarrow alone."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import longbow
import numpy as np
import pyarrow as pa
import pyarrow.flight as flight
from condition import Condition

from .database import K, Database
from .longbow_engine import ACKNOWLEDGED, SETTINGS, rows

#: Queries in one message of a stream.
STREAMED = 256
NAMES = ("dataset", "k", "ef", "query_vector")


class Wire(Database):
    """A server of its own; what writes is the client, what searches is pyarrow."""

    packages = ("pyarrow",)
    settings = SETTINGS
    acknowledged = ACKNOWLEDGED

    server: subprocess.Popen[str] | None = None

    def create(self, rows: int) -> None:
        self.open()

    def open(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [os.environ["LONGBOW_BIN"], "serve", "--data-path", str(self.folder)]
        for name in ("listen", "meta", "metrics"):
            command += [f"--{name}-addr", "127.0.0.1:0"]
        # A setting of the caller's shell must not change what is measured.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LONGBOW_")}
        log = Path(f"{self.folder}.log").open("ab")
        self.server = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment
        )
        line = self.server.stdout.readline()
        if not line.startswith("longbow ready "):
            raise RuntimeError(f"the server does not start: {line!r}")
        told = dict(part.split("=", 1) for part in line.split()[2:])
        self.client = longbow.connect(f"grpc://{told['data']}", f"grpc://{told['meta']}")
        self.flight = flight.connect(f"grpc+tcp://{told['data']}")

    def insert(self, first: int, vectors: np.ndarray) -> None:
        self.client.insert("rows", rows(self, first, vectors), metric=self.metric)

    replace = insert

    def index(self) -> None:
        self.client.wait_until_indexed("rows", timeout=3_600)

    def effort(self, breadth: int) -> None:
        self.breadth = breadth

    def delete(self, first: int, count: int) -> None:
        self.client.delete("rows", range(first, first + count))

    def close(self) -> None:
        self.client.close()
        self.flight.close()
        self.end()

    def end(self) -> None:
        if self.server is not None:
            self.server.terminate()
            self.server.wait(60)
            self.server.stdout.close()
            self.server = None

    def pids(self) -> list[int]:
        return [self.server.pid]


class Tickets(Wire):
    """A DoGet with a JSON ticket for each query."""

    def search(self, query: np.ndarray) -> Any:
        return self._found({"dataset": "rows", "vector": query.tolist(), "k": K, "ef": self.breadth})

    def search_where(self, query: np.ndarray, condition: Condition) -> Any:
        only = {"field": condition.field, "operator": condition.comparison, "value": condition.value}
        asked = {"dataset": "rows", "vector": query.tolist(), "k": K, "ef": self.breadth, "filters": [only]}
        return self._found(asked)

    def _found(self, asked: dict[str, Any]) -> Any:
        ticket = flight.Ticket(json.dumps({"search": asked}).encode())
        return self.flight.do_get(ticket).read_all()["id"].to_numpy()


class Exchange(Wire):
    """One DoExchange that stays open: a message for each query, or for many."""

    def open(self) -> None:
        super().open()
        self.stream: Any = None
        self.effort(K)

    def effort(self, breadth: int) -> None:
        super().effort(breadth)
        self.asked: dict[int, list[pa.Array]] = {}

    def search(self, query: np.ndarray) -> Any:
        writer, reader = self.stream or self._begin()
        writer.write_batch(self._message(query[None]))
        return reader.read_chunk().data.column("id").to_numpy()

    def search_many(self, queries: np.ndarray) -> Any:
        self._end()
        writer, reader = self._begin()

        def write() -> None:
            for start in range(0, len(queries), STREAMED):
                writer.write_batch(self._message(queries[start : start + STREAMED]))
            writer.done_writing()

        # Written while answers are read: were they read at the end, both sides could come to wait for each other.
        thread = threading.Thread(target=write)
        thread.start()
        ids = reader.read_all()["id"].to_numpy()
        thread.join()
        writer.close()
        self.stream = None
        return ids.reshape(len(queries), K)

    def close(self) -> None:
        self._end()
        super().close()

    def _begin(self) -> Any:
        writer, reader = self.flight.do_exchange(flight.FlightDescriptor.for_command(b"VectorSearch"))
        writer.begin(self._message(np.zeros((1, self.dim), np.float32)).schema)
        self.stream = (writer, reader)
        return self.stream

    def _end(self) -> None:
        if self.stream is not None:
            writer, reader = self.stream
            writer.done_writing()
            reader.read_all()
            writer.close()
            self.stream = None

    def _message(self, queries: np.ndarray) -> pa.RecordBatch:
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(queries.reshape(-1)), self.dim)
        return pa.RecordBatch.from_arrays([*self._asked(len(queries)), vectors], names=NAMES)

    def _asked(self, count: int) -> list[pa.Array]:
        """The columns that are the same for all queries of a pass."""
        if self.asked.get(count) is None:
            numbers = [pa.array(np.full(count, number, np.int32)) for number in (K, self.breadth)]
            self.asked[count] = [pa.array(["rows"] * count), *numbers]
        return self.asked[count]
