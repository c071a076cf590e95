"""Many clients at once: each asks, waits for the answer, and asks again, until the time is up."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight

from .client import connect, dataset_ticket, error_text, get, is_unimplemented, put, search_ticket
from .data import BLOCK, SPREAD, quantise
from .result import MB, Result
from .run import Run, plain_vector

PUT_ROWS = 1000
GET_ROWS = 1000
# How far a batch of new rows is moved, in each dimension.
MOVE = SPREAD / 4
# New rows get ids that no generated row has: a range a worker above this.
FIRST_NEW_ID = 1 << 40
SHARES = {
    "put": (("put", 1.0),),
    "get": (("get", 1.0),),
    "search": (("search", 1.0),),
    "mixed": (("put", 0.2), ("get", 0.3), ("search", 0.5)),
}


@dataclass
class Tally:
    """What one kind of operation did."""

    latencies_ms: list[float] = field(default_factory=list)
    rows: int = 0
    bytes: int = 0
    errors: int = 0
    first_error: str | None = None
    skipped: str | None = None

    def add(self, other: Tally) -> None:
        """Adds what another worker did."""
        self.latencies_ms += other.latencies_ms
        self.rows += other.rows
        self.bytes += other.bytes
        self.errors += other.errors
        self.first_error = self.first_error or other.first_error
        self.skipped = self.skipped or other.skipped


class Worker(threading.Thread):
    """One client with a connection of its own."""

    def __init__(self, run: Run, number: int, stop: threading.Event, queries: np.ndarray) -> None:
        super().__init__(name=f"client-{number}")
        self.spec, self.mixture, self.dataset = run.spec, run.mixture, run.name
        self.client = connect(run.servers.data_uri)
        self.shares = SHARES[run.args.operation]
        self.rng = np.random.default_rng([run.spec.seed, 3, number])
        self.stop = stop
        self.k = run.args.search_k
        options = {"ef": run.args.ef}
        self.tickets = [search_ticket(run.name, plain_vector(q), self.k, **options) for q in queries]
        self.cluster, self.base = run.mixture.raw((3, number), BLOCK)
        self.next_id = FIRST_NEW_ID + (number << 32)
        self.tallies: dict[str, Tally] = defaultdict(Tally)
        self.operations: dict[str, Callable[[], tuple[int, int]]] = {
            "put": self.put,
            "get": self.get,
            "search": self.search,
        }

    def put(self) -> tuple[int, int]:
        """One batch of new rows, acknowledged.

        The worker's block is cut at a new place and moved by a little each time: new points of the mixture for
        the price of an addition, where copies of the same points would be data that no one has.
        """
        start = int(self.rng.integers(BLOCK - PUT_ROWS))
        span = slice(start, start + PUT_ROWS)
        ids = np.arange(self.next_id, self.next_id + PUT_ROWS)
        self.next_id += PUT_ROWS
        step = MOVE * self.rng.standard_normal(self.base.shape[1], dtype=np.float32)
        vectors = quantise(self.base[span] + step, self.spec.element)
        batch = self.mixture.make_batch(ids, self.cluster[span], vectors)
        put(self.client, self.dataset, self.mixture.schema(), [batch])
        return batch.num_rows, batch.nbytes

    def get(self) -> tuple[int, int]:
        """The first rows of the dataset."""
        table = get(self.client, dataset_ticket(self.dataset, limit=GET_ROWS))
        return table.num_rows, table.nbytes

    def search(self) -> tuple[int, int]:
        """One search."""
        table = get(self.client, self.tickets[self.rng.integers(len(self.tickets))])
        return table.num_rows, table.nbytes

    def run(self) -> None:
        """Operations by their shares until told to stop."""
        kinds = [kind for kind, _ in self.shares]
        shares = np.cumsum([share for _, share in self.shares])
        while not self.stop.is_set():
            kind = kinds[int(np.searchsorted(shares, self.rng.random() * shares[-1], side="right"))]
            tally = self.tallies[kind]
            if tally.skipped:
                if all(self.tallies[each].skipped for each in kinds):
                    break
                continue
            self._once(kind, tally)
        self.client.close()

    def _once(self, kind: str, tally: Tally) -> None:
        start = time.perf_counter()
        try:
            rows, size = self.operations[kind]()
        except (pa.ArrowException, flight.FlightError) as error:
            if is_unimplemented(error):
                tally.skipped = error_text(error)
                return
            tally.errors += 1
            tally.first_error = tally.first_error or error_text(error)
            return
        tally.latencies_ms.append((time.perf_counter() - start) * 1e3)
        tally.rows += rows
        tally.bytes += size


def test_load(run: Run, clients: int, seconds: float) -> list[Result]:
    """`clients` workers for `seconds`; a result for each kind of operation and one for all."""
    queries, _ = run.mixture.queries(200)
    stop = threading.Event()
    workers = [Worker(run, number, stop, queries) for number in range(clients)]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    stop.wait(seconds)
    stop.set()
    for worker in workers:
        worker.join()
    elapsed = time.perf_counter() - start
    total: dict[str, Tally] = defaultdict(Tally)
    for worker in workers:
        for kind, tally in worker.tallies.items():
            total[kind].add(tally)
    results = [
        _result(f"concurrent_{kind}", tally, elapsed, clients) for kind, tally in sorted(total.items())
    ]
    if len(results) > 1:
        everything = Tally()
        for tally in total.values():
            everything.add(tally)
        everything.skipped = None
        results.append(_result(f"concurrent_{run.args.operation}", everything, elapsed, clients))
    return results


def _result(name: str, tally: Tally, elapsed: float, clients: int) -> Result:
    extra = {"clients": clients, "MB_per_second": round(tally.bytes / MB / elapsed, 2)}
    rate = len(tally.latencies_ms) / elapsed
    return Result(
        name,
        elapsed,
        rate,
        "ops/s",
        tally.rows,
        tally.bytes,
        tally.latencies_ms,
        tally.errors,
        tally.first_error,
        tally.skipped,
        extra,
    )
