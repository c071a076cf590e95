"""DoPut and DoGet beside a bare Flight server, with one and the same pyarrow client."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import vectors
from pairs import alternate
from perf.client import Servers, Skipped, action, chunks, dataset_ticket, put, wait_until_indexed
from process import Server
from settle import settle

NAMES = ("longbow", "bare")

# A transfer that is over in hundredths of a second is at the mercy of the scheduler: it gets so many times the rounds.
SMALL_BYTES, SMALL_FACTOR = 100_000_000, 5


class Side:
    """One of the two servers, with what it used of the CPU."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.servers = Servers(server.data_uri, server.meta_uri)
        self.cpu: dict[str, list[float]] = {"put": [], "get": []}
        self.threads: defaultdict[str, float] = defaultdict(float)

    def put(self, dataset: str, batches: list, size: int) -> float:
        """Uploads and returns MB/s from the first byte to the last acknowledgement."""
        cpu, threads = self.server.cpu_seconds(), self.server.cpu_by_thread()
        start = time.perf_counter()
        put(self.servers.data, dataset, batches[0].schema, batches)
        elapsed = time.perf_counter() - start
        self.cpu["put"].append(self.server.cpu_seconds() - cpu)
        for name, used in self.server.cpu_by_thread().items():
            self.threads[name] += max(0.0, used - threads.get(name, 0.0))
        return size / 1e6 / elapsed

    def get(self, dataset: str, rows: int, size: int) -> float:
        """Streams the dataset without keeping it and returns MB/s; a row too few or too many is an error."""
        settle(size)
        cpu = self.server.cpu_seconds()
        start = time.perf_counter()
        got = sum(batch.num_rows for batch in chunks(self.servers.data, dataset_ticket(dataset)))
        elapsed = time.perf_counter() - start
        self.cpu["get"].append(self.server.cpu_seconds() - cpu)
        if got != rows:
            raise RuntimeError(f"{self.server.name} gave {got} rows of {dataset}, {rows} were put")
        return size / 1e6 / elapsed

    def drop(self, dataset: str) -> None:
        """Deletes a dataset."""
        action(self.servers.data, "delete-dataset", {"dataset": dataset})

    def cpu_mean(self, kind: str) -> float:
        """CPU seconds of the server a round, the mean (the kernel counts in steps of 10 ms); then forgets them."""
        taken, self.cpu[kind] = self.cpu[kind], []
        return round(sum(taken) / len(taken), 4)


def measure(
    ours: Server, peer: Server, sizes: list[int], rounds: int, index_timeout: float
) -> dict[str, Any]:
    """Both directions at each size."""
    sides = (Side(ours), Side(peer))
    out: dict[str, Any] = {}
    for rows in sizes:
        data = vectors.batches(vectors.gaussian(rows, seed=rows))
        size = sum(batch.nbytes for batch in data)
        times = rounds * (SMALL_FACTOR if size < SMALL_BYTES else 1)
        out[str(rows)] = {
            "bytes": size,
            "put": _puts(sides, data, rows, size, times),
            "get": _gets(sides, data, rows, size, times, index_timeout),
        }
    for side in sides:
        side.servers.close()
    return out


def _puts(sides: tuple[Side, Side], data: list, rows: int, size: int, rounds: int) -> dict[str, Any]:
    def one(side: Side) -> Callable[[int], float]:
        def measured(number: int) -> float:
            settle(size)
            name = f"put_{rows}_{number}"
            rate = side.put(name, data, size)
            side.drop(name)
            return rate

        return measured

    for side in sides:
        side.put("warm", data[:1], size)
        side.drop("warm")
        side.cpu["put"].clear()
        side.threads.clear()
    summary = alternate(rounds, one(sides[0]), one(sides[1]), NAMES, "MB/s").summary()
    cpu = {f"{name}_cpu_s": side.cpu_mean("put") for name, side in zip(NAMES, sides, strict=True)}
    threads = {name: round(used / rounds, 3) for name, used in sides[0].threads.items()}
    return summary | cpu | {"longbow_cpu_s_by_thread": threads}


def _gets(
    sides: tuple[Side, Side], data: list, rows: int, size: int, rounds: int, index_timeout: float
) -> dict[str, Any]:
    name = f"get_{rows}"
    for side in sides:
        side.put(name, data, size)
        side.cpu["put"].clear()
    indexed = _indexed(sides[0], name, index_timeout)
    for side in sides:
        side.get(name, rows, size)
        side.cpu["get"].clear()
    pairs = alternate(
        rounds,
        lambda _: sides[0].get(name, rows, size),
        lambda _: sides[1].get(name, rows, size),
        NAMES,
        "MB/s",
    )
    for side in sides:
        side.drop(name)
    cpu = {f"{label}_cpu_s": side.cpu_mean("get") for label, side in zip(NAMES, sides, strict=True)}
    return pairs.summary() | cpu | {"index_ready": indexed}


def _indexed(side: Side, name: str, timeout: float) -> bool | str:
    """Waits until the indexer is idle, so that reads are not measured beside it; says if it was not."""
    try:
        wait_until_indexed(side.servers.data, name, timeout, interval=0.2)
        return True
    except TimeoutError:
        return False
    except Skipped as why:
        return str(why)
