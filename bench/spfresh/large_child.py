"""One database of the large run, in a process of its own: prints what was measured as one line of JSON.

python large_child.py build DATABASE MIXTURE.json FOLDER LIMIT
python large_child.py search DATABASE MIXTURE.json FOLDER LIMIT TRUTH.npy
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from confined import charged_mb, confine, reads, resident_mb
from faiss_on_disk import FaissOnDisk
from mixture import K, Mixture

#: The least memory that Longbow can be told to keep to.
LEAST = 64 << 20
#: Of LanceDB's indexes.
KINDS = {"pq": "IVF_PQ", "flat": "IVF_FLAT", "hnsw": "IVF_HNSW_SQ"}
#: Longest pass that is begun another search in.
PASS_SECONDS = 20
QUANTILES = (("p50", 0.5), ("p99", 0.99), ("p999", 0.999))
Told = dict[str, Any]


class Longbow:
    """In this process, with its vectors in postings; the effort is that of the searches."""

    efforts = (8, 16, 32, 64, 128, 256)

    def __init__(self, folder: Path, limit: int) -> None:
        import longbow

        self.database = longbow.open(
            folder, memory_limit=max(limit, LEAST), max_wal_size="256MiB", vector_index="spfresh"
        )

    def add(self, ids: np.ndarray, rows: np.ndarray) -> None:
        self.database.insert("rows", rows, ids=ids)

    def index_rows(self) -> None:
        self.database.wait_until_indexed("rows", timeout=3_600)

    def ready(self) -> None:
        self.index_rows()

    def search(self, query: np.ndarray, effort: Any) -> np.ndarray:
        return self.database.search_numpy("rows", query, K, ef=effort)[0]

    def sizes(self, folder: Path, rows: int) -> Told:
        """Of the index: memory, and its file."""
        indexes = self.database.sql("SELECT bytes FROM longbow.indexes")["bytes"].to_pylist()
        blocks = sum(file.stat().st_size for file in folder.rglob("blocks-*"))
        return {"index_bytes_a_row": sum(indexes) / rows, "block_bytes_a_row": blocks / rows}

    def close(self) -> None:
        self.database.close()


class LanceDb:
    """By its synchronous interface; efforts are lists that are read and candidates that are compared exactly for each."""

    efforts = ((5, 1), (5, 5), (10, 5), (20, 5), (20, 10), (40, 10), (80, 10), (80, 20))

    def __init__(self, folder: Path, kind: str) -> None:
        import lancedb
        import pyarrow

        self.pa, self.kind = pyarrow, kind
        self.database = lancedb.connect(str(folder))
        if "rows" in self.database.table_names():
            self.table = self.database.open_table("rows")
        else:
            self.table = None

    def add(self, ids: np.ndarray, rows: np.ndarray) -> None:
        vectors = self.pa.FixedSizeListArray.from_arrays(
            self.pa.array(rows.reshape(-1)), rows.shape[1]
        )
        rows = self.pa.table({"id": self.pa.array(ids, self.pa.int64()), "vector": vectors})
        if self.table is None:
            self.table = self.database.create_table("rows", rows)
        else:
            self.table.add(rows)

    def index_rows(self) -> None:
        self.table.optimize()
        more = {"num_sub_vectors": self.dim() // 4} if self.kind == "pq" else {}
        self.table.create_index(
            metric="l2", vector_column_name="vector", index_type=KINDS[self.kind], **more
        )

    def dim(self) -> int:
        return int(self.table.schema.field("vector").type.list_size)

    def ready(self) -> None:
        pass

    def search(self, query: np.ndarray, effort: Any) -> np.ndarray:
        lists, refine = effort
        asked = (
            self.table.search(query, vector_column_name="vector")
            .distance_type("l2")
            .limit(K)
            .nprobes(lists)
        )
        if refine > 1 and self.kind != "flat":
            asked = asked.refine_factor(refine)
        return asked.select(["id", "_distance"]).to_arrow()["id"].to_numpy()

    def sizes(self, folder: Path, rows: int) -> Told:
        return {}

    def close(self) -> None:
        pass


#: One of them.
Database = Longbow | LanceDb | FaissOnDisk


def opened(name: str, folder: Path, limit: int) -> Database:
    kind, _, index = name.partition("-")
    match kind:
        case "longbow":
            return Longbow(folder, limit)
        case "faiss":
            return FaissOnDisk(folder)
    return LanceDb(folder, index)


def build(name: str, mixture: Mixture, folder: Path, limit: int) -> Told:
    """All rows in, and the index complete."""
    database = opened(name, folder, limit)
    inserting = 0.0
    for first, rows in mixture.chunks():
        began = time.perf_counter()
        database.add(np.arange(first, first + len(rows)), rows)
        inserting += time.perf_counter() - began
    began = time.perf_counter()
    database.index_rows()
    indexed = time.perf_counter() - began
    memory, sizes = resident_mb(), database.sizes(folder, mixture.rows)
    database.close()
    files = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return {
        "insert_s": inserting,
        "until_indexed_s": indexed,
        "files_mb": files / 2**20,
        "build": memory,
        **sizes,
    }


def one_pass(
    database: Database, queries: np.ndarray, effort: Any
) -> tuple[list[float], list[np.ndarray]]:
    """The time of each search, and what it found: of as many queries as there is time for."""
    times: list[float] = []
    found: list[np.ndarray] = []
    for query in queries:
        if sum(times) > PASS_SECONDS:
            break
        began = time.perf_counter()
        found.append(database.search(query, effort))
        times.append(time.perf_counter() - began)
    return times, found


def passes(database: Database, queries: np.ndarray, truth: np.ndarray) -> Iterator[Told]:
    """For each effort a pass over half of the queries to warm up, and one over the others that is timed."""
    half = len(queries) // 2
    for effort in database.efforts:
        one_pass(database, queries[:half], effort)
        before = reads()
        times, found = one_pass(database, queries[half:], effort)
        after = reads()
        true = truth[half : half + len(found)]
        hits = sum(len(np.intersect1d(*pair)) for pair in zip(found, true, strict=True))
        yield {
            "effort": effort,
            "searches": len(times),
            "recall": hits / true.size,
            "searches_per_s": len(times) / sum(times),
            **{f"{name}_us": float(np.quantile(times, share)) * 1e6 for name, share in QUANTILES},
            "read_bytes": (after[0] - before[0]) / len(times),
            "waits_for_pages": (after[1] - before[1]) / len(times),
        }


def search(
    name: str,
    mixture: Mixture,
    folder: Path,
    limit: int,
    truth: np.ndarray,
    confined: bool = True,
) -> Told:
    """Opens what was built, and searches, with no more memory than the limit beyond what the interpreter has."""
    queries = mixture.questions()
    __import__(name.partition("-")[0])
    before = resident_mb()
    confined = confined and confine(limit)
    began = time.perf_counter()
    database = opened(name, folder, limit)
    database.search(queries[0], database.efforts[0])
    first = time.perf_counter() - began
    database.ready()
    ready = time.perf_counter() - began
    points = list(passes(database, queries, truth))
    memory = {"before": before, "after": resident_mb(), "charged_mb": charged_mb()}
    database.close()
    return {
        "confined": confined,
        "first_answer_s": first,
        "ready_s": ready,
        "memory": memory,
        "points": points,
    }


def main() -> None:
    what, name, mixture, folder, limit = sys.argv[1:6]
    given = (name, Mixture.load(Path(mixture)), Path(folder), int(limit))
    told = build(*given) if what == "build" else search(*given, np.load(sys.argv[6]))
    print(json.dumps({"database": name, **told}), flush=True)


if __name__ == "__main__":
    main()
