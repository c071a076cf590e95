"""One peer in a process of its own: builds once, then makes a pass for each line of standard input.

    python adapter_child.py hnswlib FOLDER_OF_THE_SET euclidean

Speaks as `longbow bench ann --serve` does: first `{"ready": …}`, then a point or an `{"error": …}` for each request
`{"effort": 16, "batched": false}`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import adapters
import numpy as np
import truth

K = 10


class Child:
    """A peer that was built, with the queries and the exact answers."""

    def __init__(self, adapter: adapters.Adapter, folder: Path, metric: str) -> None:
        self.adapter, self.metric = adapter, metric
        self.base, self.queries, self.truth = (
            np.load(folder / f"{name}.npy") for name in ("base", "queries", "truth")
        )
        began, cpu = time.perf_counter(), time.process_time()
        adapter.build(self.base, metric)
        self.build_s, self.build_cpu_s = time.perf_counter() - began, time.process_time() - cpu

    def ready(self) -> dict[str, Any]:
        """What is known before the first pass."""
        saved = self.adapter.saved_bytes()
        rows, dim = self.base.shape
        return {
            "index": self.adapter.name,
            "settings": self.adapter.settings,
            "build_s": round(self.build_s, 3),
            "build_cpu_s": round(self.build_cpu_s, 3),
            "bytes_per_vector": None if saved is None else round(saved / rows, 1),
            "vector_bytes": 4 * dim,
            "batches": True,
        }

    def point(self, effort: int, batched: bool) -> dict[str, Any]:
        """One pass. Processor time is that of all threads of this process, of which there should be one."""
        self.adapter.effort(effort)
        search, queries = self.adapter.search, self.queries
        parts = [queries] if batched else [queries[n : n + 1] for n in range(len(queries))]
        wall, cpu = time.perf_counter(), time.process_time()
        found = [search(part, K) for part in parts]
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        rows = np.concatenate([whole(part) for part in found])
        share = truth.recall(rows, self.truth, self.base, queries, self.metric, K)
        point = {
            "effort": effort,
            "recall": round(share, 5),
            "qps": None,
            "qps_wall": None,
            "qps_batched": None,
        }
        rate = round(len(queries) / cpu, 1)
        if batched:
            return point | {"qps_batched": rate}
        return point | {"qps": rate, "qps_wall": round(len(queries) / wall, 1)}


def whole(found: Any) -> np.ndarray:
    """Row numbers `[queries, K]`, of one query or many; where an index found fewer, the rest is -1."""
    rows = np.atleast_2d(np.asarray(found)).astype(np.int64)
    return np.pad(rows, ((0, 0), (0, K - rows.shape[1])), constant_values=-1)


def main() -> int:
    """Answers until the input ends."""
    # Libraries print to standard output as they like; the answers keep it for themselves.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(answer: dict[str, Any]) -> None:
        print(json.dumps(answer), file=answers, flush=True)

    name, folder, metric = sys.argv[1:]
    kinds = {kind.name: kind for kind in adapters.ALL}
    try:
        child = Child(kinds[name](), Path(folder), metric)
        say({"ready": child.ready()})
    except Exception as error:  # Whatever a library raises is why it was not measured.
        say({"error": f"{type(error).__name__}: {error}"})
        return 1
    for line in sys.stdin:
        try:
            say(child.point(**json.loads(line)))
        except Exception as error:
            say({"error": f"{type(error).__name__}: {error}"})
    return 0


if __name__ == "__main__":
    sys.exit(main())
