"""Is what was acknowledged found at once? Searches for acknowledged rows while ingest runs at full speed.

A writer streams batches as fast as the server takes them. Each acknowledgement is handed to the checkers,
newest first; a check starts after the acknowledgement was read, asks for the nearest neighbour of one row
of that batch, and must get that row. Every miss counts. A miss is then asked about again, to tell a row that
was not visible in time (a broken promise) from one that the graph search passes by each time although an
exact scan finds it (recall below 1).

    python bench/freshness.py --checks 10000
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import paths
import pyarrow as pa
import pyarrow.flight as flight
import vectors
from perf.client import action, connect, error_text, get, path, search_ticket
from perf.run import plain_vector
from process import Server, longbow

BATCH_ROWS = 500
# Ingest moves to a new dataset after this many rows, and drops the ones before: the run may be long, the
# memory and the disk it takes may not.
DATASET_ROWS = 200_000
CHECKERS = 2
TIME_LIMIT = 600.0
# Acknowledgements kept for the checkers, who take the newest.
WAITING = 64


@dataclass
class State:
    """What writer and checkers share, under one lock."""

    checks: int
    lock: threading.Lock = field(default_factory=threading.Lock)
    done: threading.Event = field(default_factory=threading.Event)
    acknowledged: deque[tuple[str, int]] = field(default_factory=lambda: deque(maxlen=WAITING))
    arrived: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    in_use: Counter[str] = field(default_factory=Counter)
    live: list[str] = field(default_factory=list)
    started: int = 0
    finished: int = 0
    not_visible: int = 0
    passed_by: int = 0
    not_searchable: int = 0
    rows: int = 0
    errors: list[str] = field(default_factory=list)
    latencies_ms: list[float] = field(default_factory=list)

    def take(self) -> tuple[str, int] | None:
        """The newest acknowledgement, its dataset held against dropping; None when nothing is left to check."""
        while not self.done.is_set():
            if not self.arrived.acquire(timeout=0.1):
                continue
            with self.lock:
                if self.started >= self.checks:
                    return None
                if not self.acknowledged:
                    continue
                dataset, batch = self.acknowledged.pop()
                if dataset not in self.live:
                    continue
                self.started += 1
                self.in_use[dataset] += 1
                return dataset, batch
        return None

    def droppable(self) -> list[str]:
        """Datasets that are neither written nor being checked; from here on they are not checked any more."""
        with self.lock:
            old = [name for name in self.live[:-1] if self.in_use[name] == 0]
            self.live = [name for name in self.live if name not in old]
            return old


class Writer(threading.Thread):
    """Streams datasets one after another until all checks are done."""

    def __init__(self, server: Server, pool: np.ndarray, state: State) -> None:
        super().__init__(name="writer", daemon=True)
        self.client = connect(server.data_uri)
        self.batches = vectors.batches(pool, batch_rows=BATCH_ROWS)
        self.state = state

    def run(self) -> None:
        """Ingests until told to stop; an error ends the run."""
        number = 0
        try:
            while not self.state.done.is_set():
                self.one(f"fresh_{number}")
                number += 1
                for name in self.state.droppable():
                    action(self.client, "delete-dataset", {"dataset": name})
        except (pa.ArrowException, flight.FlightError, ValueError) as error:
            self.state.errors.append(f"ingest: {error_text(error)}")
            self.state.done.set()

    def one(self, name: str) -> None:
        """One dataset, its acknowledgements read by a thread beside the stream."""
        with self.state.lock:
            self.state.live.append(name)
        writer, reader = self.client.do_put(path(name), self.batches[0].schema)
        acks = threading.Thread(target=self.read, args=(reader, name), daemon=True)
        acks.start()
        try:
            for batch in self.batches:
                if self.state.done.is_set():
                    break
                writer.write_batch(batch)
            writer.done_writing()
            acks.join()
        finally:
            writer.close()

    def read(self, reader: flight.FlightMetadataReader, name: str) -> None:
        """Hands each acknowledgement on; the n-th is that of the n-th batch."""
        number = 0
        while (metadata := reader.read()) is not None:
            ack = json.loads(metadata.to_pybytes())
            with self.state.lock:
                self.state.rows += BATCH_ROWS
                if ack.get("searchable") is True:
                    self.state.acknowledged.append((name, number))
                else:
                    self.state.not_searchable += 1
            self.state.arrived.release()
            number += 1


class Checker(threading.Thread):
    """Searches for rows of the newest acknowledged batches."""

    def __init__(self, server: Server, pool: np.ndarray, state: State, seed: int) -> None:
        super().__init__(name=f"checker-{seed}", daemon=True)
        self.client = connect(server.data_uri)
        self.pool, self.state = pool, state
        self.random = random.Random(seed)

    def run(self) -> None:
        """Checks until there is nothing left to check."""
        while (taken := self.state.take()) is not None:
            dataset, batch = taken
            row = batch * BATCH_ROWS + self.random.randrange(BATCH_ROWS)
            try:
                self.check(dataset, row)
            except (pa.ArrowException, flight.FlightError) as error:
                with self.state.lock:
                    self.state.errors.append(f"check: {error_text(error)}")
            with self.state.lock:
                self.state.in_use[dataset] -= 1
                self.state.finished += 1
                if self.state.finished >= self.state.checks:
                    self.state.done.set()

    def check(self, dataset: str, row: int) -> None:
        """One check, and on a miss a second look by the same search and by an exact scan."""
        start = time.perf_counter()
        found = self.nearest(dataset, row, None)
        taken = (time.perf_counter() - start) * 1e3
        missed = found != [row]
        passed_by = (
            missed and self.nearest(dataset, row, None) != [row] and self.nearest(dataset, row, True) == [row]
        )
        with self.state.lock:
            self.state.latencies_ms.append(taken)
            self.state.passed_by += passed_by
            self.state.not_visible += missed and not passed_by

    def nearest(self, dataset: str, row: int, exact: bool | None) -> list[int]:
        """The id nearest to the vector of a row."""
        ticket = search_ticket(dataset, plain_vector(self.pool[row]), 1, exact=exact)
        return get(self.client, ticket)["id"].to_pylist()


def measure(server: Server, checks: int) -> dict[str, Any]:
    """Runs the checks; `misses` must be 0."""
    pool = vectors.gaussian(DATASET_ROWS, seed=11)
    state = State(checks)
    threads = [Writer(server, pool, state), *(Checker(server, pool, state, seed) for seed in range(CHECKERS))]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    state.done.wait(TIME_LIMIT)
    elapsed = time.perf_counter() - start
    state.done.set()
    for thread in threads:
        thread.join(30)
    return {
        "checks_asked": checks,
        "checks": state.finished,
        "misses": state.not_visible + state.passed_by,
        "not_visible": state.not_visible,
        "passed_by_the_graph": state.passed_by,
        "acknowledged_not_searchable": state.not_searchable,
        "errors": len(state.errors),
        "first_error": state.errors[0] if state.errors else None,
        "seconds": round(elapsed, 2),
        "ingested_rows": state.rows,
        "ingested_rows_per_second": round(state.rows / elapsed),
        "check_p50_ms": round(float(np.median(state.latencies_ms)), 3) if state.latencies_ms else None,
    }


def broken(result: dict[str, Any]) -> bool:
    """Whether the promise was not shown: a miss, an error, or checks that were not made."""
    return bool(result["misses"] or result["errors"] or result["checks"] < result["checks_asked"])


def main() -> int:
    """Runs it alone."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--checks", type=int, default=10_000)
    arguments.add_argument("--binary", type=Path, default=paths.BINARY)
    arguments.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()))
    args = arguments.parse_args()
    with longbow(args.binary, args.dir) as server:
        result = measure(server, args.checks)
    print(json.dumps(result, indent=2))
    return 1 if broken(result) else 0


if __name__ == "__main__":
    sys.exit(main())
