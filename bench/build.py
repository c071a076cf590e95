"""From nothing to indexed: Longbow's put until READY beside hnswlib's build of the same graph."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
import vectors
from pairs import alternate
from perf.client import action, connect, get, put, search_ticket, wait_until_indexed
from perf.data import Mixture, Spec
from perf.exact import Truth
from perf.run import plain_vector
from process import Server

M = 16
EF_CONSTRUCTION = 200
EF_SEARCH = 50
K = 10

try:
    import hnswlib
except ImportError:
    hnswlib = None


def measure(server: Server, rows: int, rounds: int, queries: int, index_timeout: float) -> dict[str, Any]:
    """Rows a second of both (hnswlib in memory alone, Longbow with its log and over the wire), and their recall.

    Both use M=16, ef_construction=200, all cores, and are searched with ef=50.
    """
    mixture = Mixture(Spec(rows, vectors.DIM))
    stored = mixture.vectors(rows)
    asked, _ = mixture.queries(queries)
    run = Run(server, stored, asked, index_timeout)
    settings = {"rows": rows, "dim": vectors.DIM, "M": M, "ef_construction": EF_CONSTRUCTION, "ef": EF_SEARCH}
    if hnswlib is None:
        rates = [run.ours(number) for number in range(rounds)]
        rate = {"unit": "rows/s", "longbow": round(float(np.median(rates)), 1), "hnswlib": "not measured"}
    else:
        rate = alternate(rounds, run.ours, run.peer, ("longbow", "hnswlib"), "rows/s").summary()
    truth = Truth(list(range(rows)), stored, "euclidean")
    recall = {name: truth.recall(asked, replies, K) for name, replies in run.replies.items()}
    return {
        **settings,
        "ingest_and_index": rate,
        "threads": run.threads,
        "cpu_seconds": {name: round(float(np.median(taken)), 2) for name, taken in run.cpu.items()},
        "acknowledged_rows_per_second": round(float(np.median(run.acknowledged)), 1),
        "recall_at_10": {
            name: round(value, 5) if value is not None else None for name, value in recall.items()
        },
        "recall_queries": queries,
    }


class Run:
    """Both builds over the same rows; keeps the last replies of each for the recall."""

    def __init__(self, server: Server, stored: np.ndarray, asked: np.ndarray, index_timeout: float) -> None:
        self.server, self.stored, self.asked, self.timeout = server, stored, asked, index_timeout
        self.batches = vectors.batches(stored)
        self.client = connect(server.data_uri)
        self.threads = len(os.sched_getaffinity(0))
        self.replies: dict[str, list[list]] = {}
        self.cpu: dict[str, list[float]] = {"longbow": []}
        self.acknowledged: list[float] = []

    def ours(self, number: int) -> float:
        """Rows a second from the first byte sent until READY."""
        name = f"build_{number}"
        cpu = self.server.cpu_seconds()
        start = time.perf_counter()
        put(self.client, name, self.batches[0].schema, self.batches)
        self.acknowledged.append(len(self.stored) / (time.perf_counter() - start))
        wait_until_indexed(self.client, name, self.timeout)
        elapsed = time.perf_counter() - start
        self.cpu["longbow"].append(self.server.cpu_seconds() - cpu)
        tickets = [search_ticket(name, plain_vector(query), K, ef=EF_SEARCH) for query in self.asked]
        self.replies["longbow"] = [get(self.client, ticket)["id"].to_pylist() for ticket in tickets]
        action(self.client, "delete-dataset", {"dataset": name})
        return len(self.stored) / elapsed

    def peer(self, _: int) -> float:
        """Rows a second of hnswlib's `add_items`."""
        index = hnswlib.Index(space="l2", dim=self.stored.shape[1])
        index.init_index(max_elements=len(self.stored), M=M, ef_construction=EF_CONSTRUCTION)
        index.set_num_threads(self.threads)
        cpu = time.process_time()
        start = time.perf_counter()
        index.add_items(self.stored, np.arange(len(self.stored)))
        elapsed = time.perf_counter() - start
        self.cpu.setdefault("hnswlib", []).append(time.process_time() - cpu)
        index.set_ef(EF_SEARCH)
        labels, _distances = index.knn_query(self.asked, k=K)
        self.replies["hnswlib"] = [[int(label) for label in row] for row in labels]
        return len(self.stored) / elapsed
