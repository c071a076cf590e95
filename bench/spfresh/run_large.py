"""More vectors than memory: Longbow with its vectors in postings, under a memory limit.

    python bench/spfresh/run_large.py [--rows 2000000 --dim 128 --centres 2000 --share 0.1] [--json FILE|-]

A mixture of Gaussians whose centres drift while rows come; queries are of its last state. The memory limit is a share of the vectors'
bytes. ``anonymous_mb`` is what the process holds in memory of its own, ``mapped_mb`` what of its files is mapped in besides, which the
system drops when memory is short; both as the system tells them, Python and numpy included (``before_mb``). Searches go one at a time.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import longbow
import numpy as np

K = 10
CHUNK = 20_000


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--centres", type=int, default=2_000)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--share", type=float, default=0.1, help="memory limit, of the vectors' bytes")
    parser.add_argument("--efforts", type=lambda text: [int(ef) for ef in text.split(",")], default=[8, 16, 32, 64, 128])
    parser.add_argument("--dir", type=Path)
    parser.add_argument("--json")
    return parser.parse_args()


def resident() -> dict[str, float]:
    """Megabytes of this process, as the system tells them."""
    lines = Path("/proc/self/status").read_text().splitlines()
    told = dict(line.split(":", 1) for line in lines if ":" in line)
    return {
        "anonymous_mb": int(told["RssAnon"].split()[0]) / 1024,
        "mapped_mb": int(told["RssFile"].split()[0]) / 1024,
    }


class Mixture:
    """Rows around centres that drift by a standard deviation while all of them come."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given, self.dice = given, np.random.default_rng(7)
        shape = (given.centres, given.dim)
        self.centres = self.dice.normal(size=shape).astype(np.float32)
        self.drift = self.dice.normal(size=shape).astype(np.float32)

    def around(self, rows: int, moment: float) -> np.ndarray:
        chosen = self.dice.integers(0, self.given.centres, rows)
        noise = self.dice.standard_normal((rows, self.given.dim), dtype=np.float32)
        return self.centres[chosen] + np.float32(moment) * self.drift[chosen] + np.float32(0.5) * noise

    def chunks(self) -> Iterator[tuple[int, np.ndarray]]:
        for first in range(0, self.given.rows, CHUNK):
            yield first, self.around(min(CHUNK, self.given.rows - first), first / self.given.rows)


class Truth:
    """The nearest rows of each query among those that came by."""

    def __init__(self, queries: np.ndarray) -> None:
        self.queries = queries
        self.ids = np.empty((len(queries), 0), np.int64)
        self.distances = np.empty((len(queries), 0), np.float32)

    def add(self, first: int, rows: np.ndarray) -> None:
        distances = (rows**2).sum(1) - 2 * self.queries @ rows.T
        ids = np.broadcast_to(np.arange(first, first + len(rows)), distances.shape)
        distances = np.concatenate([self.distances, distances], 1)
        ids = np.concatenate([self.ids, ids], 1)
        nearest = np.argpartition(distances, K, axis=1)[:, :K]
        self.distances = np.take_along_axis(distances, nearest, 1)
        self.ids = np.take_along_axis(ids, nearest, 1)


def search(database: Any, queries: np.ndarray, truth: Truth, ef: int) -> dict[str, Any]:
    """One pass to warm up, and one that is timed."""
    for query in queries:
        database.search_numpy("rows", query, K, ef=ef)
    times, hits = [], 0
    for query, true in zip(queries, truth.ids, strict=True):
        began = time.perf_counter()
        ids = database.search_numpy("rows", query, K, ef=ef)[0]
        times.append(time.perf_counter() - began)
        hits += len(np.intersect1d(ids, true))
    p50, p99, p999 = (float(np.quantile(times, share)) * 1e6 for share in (0.5, 0.99, 0.999))
    return {
        "ef": ef,
        "recall": hits / truth.ids.size,
        "searches_per_s": len(queries) / sum(times),
        "p50_us": p50,
        "p99_us": p99,
        "p999_us": p999,
    }


def main() -> None:
    given = arguments()
    mixture = Mixture(given)
    queries = mixture.around(given.queries, 1.0)
    truth, before = Truth(queries), resident()
    limit = max(int(given.rows * given.dim * 4 * given.share), 64 << 20)
    with tempfile.TemporaryDirectory(dir=given.dir) as folder:
        settings = {
            "memory_limit": limit,
            "storage_segment_size": "4MiB",
            "max_wal_size": "256MiB",
            "vector_index": "spfresh",
        }
        database = longbow.open(folder, **settings)
        inserting = 0.0
        for first, rows in mixture.chunks():
            began = time.perf_counter()
            database.insert("rows", rows, ids=np.arange(first, first + len(rows)))
            inserting += time.perf_counter() - began
            truth.add(first, rows)
        began = time.perf_counter()
        database.wait_until_indexed("rows", timeout=3_600)
        waited = time.perf_counter() - began
        passes = [search(database, queries, truth, ef) for ef in given.efforts]
        report = {
            "rows": given.rows,
            "dim": given.dim,
            "vectors_mb": given.rows * given.dim * 4 / 2**20,
            "limit_mb": limit / 2**20,
            "before_mb": before["anonymous_mb"],
            **resident(),
            "insert_s": inserting,
            "until_indexed_s": waited,
            "index_bytes_a_row": sum(database.sql("SELECT bytes FROM longbow.indexes")["bytes"].to_pylist())
            / given.rows,
            "blocks_mb": sum(file.stat().st_size for file in Path(folder).rglob("blocks-*")) / 2**20,
            "searches": passes,
        }
        began = time.perf_counter()
        database.close()
        report["close_s"] = time.perf_counter() - began
        began = time.perf_counter()
        with longbow.open(folder, **settings) as again:
            again.search_numpy("rows", queries[0], K)
            report["first_answer_s"] = time.perf_counter() - began
            again.wait_until_indexed("rows", timeout=3_600)
            report["index_read_s"] = time.perf_counter() - began
    text = json.dumps(report, indent=2)
    if given.json and given.json != "-":
        Path(given.json).write_text(text)
    print(text)


if __name__ == "__main__":
    main()
