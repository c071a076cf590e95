"""A put longer than what may be acknowledged unsynced, beside the raw disk and the bare server in the same run."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight
import vectors
from perf.client import action, connect, path
from process import Server
from settle import settle

# What the server may acknowledge before the disk has it (the default of WAL_MAX_UNSYNCED), and twice that:
# from there on the rate is the disk's, not the window's.
WINDOW = 256 << 20
STEADY_FROM = 2 * WINDOW
SEGMENT = 64 << 20


def raw_rate(folder: Path, total: int, chunk: int) -> float:
    """MB/s of writing `total` bytes to a new file in chunks, each followed by fdatasync."""
    # Random bytes, so that no layer below can shrink them.
    block = memoryview(os.urandom(1 << 20) * (chunk // (1 << 20) + 1))[:chunk]
    file = folder / "raw-disk"
    settle(total)
    descriptor = os.open(file, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    try:
        start = time.perf_counter()
        written = 0
        while written < total:
            pending = block
            while pending:
                pending = pending[os.write(descriptor, pending) :]
            os.fdatasync(descriptor)
            written += chunk
        return written / 1e6 / (time.perf_counter() - start)
    finally:
        os.close(descriptor)
        file.unlink()


def long_put(client: flight.FlightClient, dataset: str, batches: list[pa.RecordBatch]) -> tuple[float, float]:
    """MB/s of the whole put, and of its part beyond `STEADY_FROM` bytes, by the acknowledgements."""
    sizes = {index: batch.nbytes for index, batch in enumerate(batches)}
    acknowledged: list[float] = []
    writer, reader = client.do_put(path(dataset), batches[0].schema)

    def read() -> None:
        while (metadata := reader.read()) is not None:
            json.loads(metadata.to_pybytes())
            acknowledged.append(time.perf_counter())

    settle(sum(sizes.values()))
    start = time.perf_counter()
    thread = threading.Thread(target=read)
    thread.start()
    try:
        for batch in batches:
            writer.write_batch(batch)
        writer.done_writing()
        thread.join()
    finally:
        writer.close()
    if len(acknowledged) != len(batches):
        raise RuntimeError(f"{len(batches)} batches were put, {len(acknowledged)} acknowledged")
    whole = sum(sizes.values()) / 1e6 / (acknowledged[-1] - start)
    passed = 0
    for index, size in sizes.items():
        passed += size
        if passed >= STEADY_FROM and index + 1 < len(batches):
            rest = sum(sizes.values()) - passed
            return whole, rest / 1e6 / (acknowledged[-1] - acknowledged[index])
    raise ValueError(f"{passed} bytes are too few: a long put needs more than {STEADY_FROM}")


def measure(server: Server, peer: Server, folder: Path, total: int, rounds: int) -> dict[str, Any]:
    """Alternates the raw disk, the bare server and the put; a put passes the wire and the disk, so its limit is the
    slower of the two."""
    pool = vectors.gaussian(100_000, seed=7)
    row_bytes = 8 + 4 * vectors.DIM
    data = vectors.batches(pool, total // row_bytes // vectors.BATCH_ROWS * vectors.BATCH_ROWS)
    chunk = data[0].nbytes
    clients = [connect(side.data_uri) for side in (server, peer)]
    raw_small, raw_large, wire, whole, steady = [], [], [], [], []
    for number in range(rounds):
        raw_small.append(raw_rate(folder, total // 2, chunk))
        raw_large.append(raw_rate(folder, total // 2, SEGMENT))
        name = f"long_{number}"
        for client, rates in ((clients[1], [wire]), (clients[0], [whole, steady])):
            for known, rate in zip(rates, long_put(client, name, data), strict=False):
                known.append(rate)
            action(client, "delete-dataset", {"dataset": name})
    for client in clients:
        client.close()
    raw = [max(pair) for pair in zip(raw_small, raw_large, strict=True)]
    limit = [min(pair) for pair in zip(raw, wire, strict=True)]
    return {
        "unit": "MB/s",
        "bytes": sum(batch.nbytes for batch in data),
        "longbow_whole": round(median(whole), 1),
        "longbow_beyond_window": round(median(steady), 1),
        f"raw_disk_sync_each_{chunk / 1e6:.0f}_MB": round(median(raw_small), 1),
        "raw_disk_sync_each_67_MB": round(median(raw_large), 1),
        "bare_server": round(median(wire), 1),
        "ratio_to_raw_disk": _ratio(steady, raw),
        "ratio_to_bare_server": _ratio(steady, wire),
        "ratio": _ratio(steady, limit),
        "rounds": {
            "longbow_beyond_window": [round(rate, 1) for rate in steady],
            "limit": [round(rate, 1) for rate in limit],
        },
    }


def _ratio(ours: list[float], theirs: list[float]) -> float:
    """The median of the ratios, round by round."""
    return round(median(a / b for a, b in zip(ours, theirs, strict=True)), 3)
