"""One peer in a process of its own: does what each line of standard input asks for.

    python database_child.py NAME FOLDER_OF_THE_SET METRIC FOLDER_OF_ITS_OWN [--with-attributes]

With attributes, its rows have them, and passes may be filtered.

Requests are `{"do": "build" | "pass" | "filtered" | "many" | "replace" | "delete" | "close" | "reopen", ...}`, answers JSON
objects, `{"error": ...}` where it failed.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "ann"), str(HERE.parent / "filtered")]

import attributes
import filtered_truth
import filters
import peers
import stages
import truth
from condition import Condition
from peers.database import K, Database

MEMORY_QUERIES = 200
WARM_QUERIES = 10
#: A pass makes at least so many queries, however slow they are.
LEAST_QUERIES = 100
LEAST_FILTERED = 40
#: So that the beginning and the end of a call are a small part of it.
MANY_TIMES = 4


class Child:
    """A peer over a set, with the attributes of its rows if there is to be a filter."""

    def __init__(
        self, adapter: type[Database], data: Path, metric: str, own: Path, attributed: bool = False
    ) -> None:
        self.data, self.metric, self.own = data, metric, own
        self.base = np.load(data / "base.npy", mmap_mode="r")
        self.queries = np.load(data / "queries.npy")
        self.known = attributes.load(data / "attributes.npz") if attributed else None
        kept = (
            {name: self.known.rows[name][: len(self.base)] for name in filters.KEPT} if self.known else None
        )
        self.allowed: dict[Condition, np.ndarray] = {}
        self.database = adapter(own / "data", self.base.shape[1], metric, kept)
        self._stand(stages.BUILT)

    def build(self) -> dict[str, Any]:
        """Inserts all rows in batches, and waits for the index."""
        database, size = self.database, self.database.batch
        batches = [np.array(self.base[at : at + size]) for at in range(0, len(self.base), size)]
        database.create(len(self.base))
        began = time.perf_counter()
        for number, batch in enumerate(batches):
            database.insert(number * size, batch)
        accepted = time.perf_counter()
        database.index()
        indexed = time.perf_counter()
        return {
            "versions": {name: metadata.version(name) for name in database.packages},
            "settings": database.settings,
            "acknowledged": database.acknowledged,
            "sweep": database.sweep,
            "batch": size,
            "rows_per_second": len(self.base) / (accepted - began),
            "indexed_s": indexed - began,
            "disk_mb": self.disk_mb(),
        }

    def one_pass(self, effort: int, within: float, again: float = 0.0) -> dict[str, Any]:
        """One query a call, until all are made or the time is over; the first few are not counted."""
        self.database.effort(effort)
        asked = [(query,) for query in self.queries]
        found, rate = timed(self.database.search, asked, Limits(within, LEAST_QUERIES, again))
        return {"effort": effort} | rate | self._judged(found)

    def filtered(self, effort: int, where: str, within: float, again: float = 0.0) -> dict[str, Any]:
        """The same with a filter by its name, which is sent with each query."""
        self.database.effort(effort)
        conditions = filters.conditions(where, self.known)
        asked = list(zip(self.queries, conditions, strict=True))
        for condition in set(conditions) - set(self.allowed):
            self.allowed[condition] = condition.passes(self.known.rows)
            # What a system keeps of a filter, it has from now on.
            self.database.search_where(self.queries[0], condition)
        found, rate = timed(self.database.search_where, asked, Limits(within, LEAST_FILTERED, again))
        some = slice(len(found))
        true = np.load(filters.truth_path(self.data, where))[some]
        told = filtered_truth.judged(
            np.stack(found), true, self.base, self.queries[some], self.metric, self.allowed, conditions[some]
        )
        share = float(np.mean([self.allowed[condition].mean() for condition in conditions]))
        return {"effort": effort, "share": share, "asked": len(found)} | rate | told

    def many(self, effort: int) -> dict[str, Any]:
        """All queries in one call, each of them several times."""
        self.database.effort(effort)
        if self.database.search_many(self.queries[:50]) is None:
            return {"effort": effort, "qps_many": None}
        asked = np.tile(self.queries, (MANY_TIMES, 1))
        began = time.perf_counter()
        found = self.database.search_many(asked)
        rate = len(asked) / (time.perf_counter() - began)
        judged = self._judged([whole(ids) for ids in found[: len(self.queries)]])
        return {"effort": effort, "qps_many": rate} | judged

    def replace(self) -> dict[str, Any]:
        """Other vectors for a tenth of the rows."""
        fresh, size = stages.replacement(self.base), self.database.batch
        # Before, so that the searches follow at once.
        self._stand(stages.REPLACED)
        began = time.perf_counter()
        for at in range(0, len(fresh), size):
            self.database.replace(at, fresh[at : at + size])
        return {"replaced_per_second": len(fresh) / (time.perf_counter() - began)}

    def delete(self) -> dict[str, Any]:
        """A tenth of the rows goes."""
        count = stages.changed(len(self.base))
        self._stand(stages.DELETED)
        began = time.perf_counter()
        self.database.delete(len(self.base) - count, count)
        return {"deleted_per_second": count / (time.perf_counter() - began)}

    def restore(self) -> dict[str, Any]:
        """The rows as they were at first, indexed."""
        count, rows, size = stages.changed(len(self.base)), len(self.base), self.database.batch
        for at in range(0, count, size):
            self.database.replace(at, np.array(self.base[at : min(at + size, count)]))
        for at in range(rows - count, rows, size):
            self.database.insert(at, np.array(self.base[at : at + size]))
        self.database.index()
        self._stand(stages.BUILT)
        return {}

    def close(self) -> dict[str, Any]:
        """Closes the database."""
        self.database.close()
        return {"disk_mb_end": self.disk_mb()}

    def reopen(self) -> dict[str, Any]:
        """What a process takes in memory that opens the database and searches it; the rows of the set are not in it."""
        began = time.perf_counter()
        self.database.open()
        self.database.effort(self.database.sweep[3])
        self.database.search(self.queries[0])
        opened = time.perf_counter() - began
        for query in self.queries[:MEMORY_QUERIES]:
            self.database.search(query)
        anonymous, file = (
            sum(kilobytes(pid, field) for pid in self.database.pids()) / 1e3
            for field in ("RssAnon", "RssFile")
        )
        self.database.close()
        return {"open_s": opened, "anonymous_mb": anonymous, "file_mb": file}

    def disk_mb(self) -> float:
        """All its files."""
        files = (path for path in self.own.rglob("*") if path.is_file() and not path.is_symlink())
        return sum(path.stat().st_size for path in files) / 1e6

    def _stand(self, stage: int) -> None:
        """From now on this is what answers are compared with."""
        self.rows = stages.rows_of(self.base, stage)
        self.truth = np.load(self.data / f"{stages.NAMES[stage]}.npy")

    def _judged(self, found: list[np.ndarray]) -> dict[str, Any]:
        rows, true = self.rows, self.truth
        ids = np.stack(found)
        gone = ids >= len(rows)
        asked = slice(len(ids))
        share = truth.recall(np.where(gone, -1, ids), true[asked], rows, self.queries[asked], self.metric, K)
        return {"recall": share, "short": int((ids < 0).any(axis=1).sum()), "deleted_found": int(gone.sum())}


@dataclass(frozen=True)
class Limits:
    """A pass ends after so many seconds, but not before so many queries; a shorter one than `again` makes all once more."""

    within: float
    least: int
    again: float


def timed(
    search: Callable[..., Any], asked: Sequence[tuple[Any, ...]], limits: Limits
) -> tuple[list[np.ndarray], dict[str, float]]:
    """One query a call, until all are made or the time is over; the first few are not counted."""
    found, times = [], []
    for arguments in asked[:WARM_QUERIES]:
        search(*arguments)
    start = time.perf_counter()
    for arguments in asked:
        began = time.perf_counter()
        ids = search(*arguments)
        ended = time.perf_counter()
        times.append(ended - began)
        found.append(ids)
        if ended > start + limits.within and len(found) >= limits.least:
            break
    while time.perf_counter() < start + limits.again:
        for arguments in asked:
            began = time.perf_counter()
            search(*arguments)
            times.append(time.perf_counter() - began)
    p50, p99 = (1e3 * float(np.percentile(times, share)) for share in (50, 99))
    rate = {"qps": len(times) / sum(times), "p50_ms": p50, "p99_ms": p99}
    return [whole(ids) for ids in found], rate


def whole(found: Any) -> np.ndarray:
    """The ids of one answer, filled up with -1 where it is short."""
    ids = np.asarray(found, dtype=np.int64)[:K]
    return np.pad(ids, (0, K - len(ids)), constant_values=-1)


def kilobytes(pid: int, field: str) -> int:
    """A figure of a process's status."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1])
    return 0


def main() -> int:
    """Answers until the input ends."""
    # Libraries print to standard output as they like; the answers keep it for themselves.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    # Ending this must end the servers that it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    name, data, metric, own, *more = sys.argv[1:]
    child: Child | None = None
    try:
        for line in sys.stdin:
            request = json.loads(line)
            do = request.pop("do")
            try:
                if child is None:
                    adapter = peers.by_name(name).load()
                    child = Child(adapter, Path(data), metric, Path(own), more == ["--with-attributes"])
                answer = getattr(child, "one_pass" if do == "pass" else do)(**request)
            except Exception as error:  # Whatever a library raises is why it was not measured.
                answer = {"error": f"{type(error).__name__}: {error}"[:500]}
            print(json.dumps(answer), file=answers, flush=True)
    finally:
        if child is not None:
            child.database.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
