"""One database of the recipe, in a process of its own: prints what was measured as one line of JSON.

    python recipe_child.py DATABASE DATA.npz FOLDER BATCH
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from recipe import K, Recipe, recall

#: As the recipe has it.
LISTS, PROBES = 96, 8


class Longbow:
    """In this process, on the disk; the kind of index and the effort are in its name."""

    def __init__(self, kind: str, folder: Path) -> None:
        import longbow

        name, _, effort = kind.partition(":")
        self.search_args: dict[str, Any] = {"exact": True} if name == "exact" else {"ef": int(effort)}
        self.index = {"exact": "flat", "graph": "hnsw", "spfresh": "spfresh"}[name]
        self.database = longbow.open(folder / "longbow")

    def build(self, vectors: np.ndarray) -> None:
        ids = np.arange(len(vectors))
        self.database.insert("rows", vectors, ids=ids, index=self.index)
        self.wait()

    def update(self, ids: np.ndarray, vectors: np.ndarray, durable: bool) -> None:
        # When it returns, the rows are logged, and found by searches.
        self.database.insert("rows", vectors, ids=ids, durable=durable)

    def wait(self) -> None:
        self.database.wait_until_indexed("rows")

    def search(self, query: np.ndarray) -> np.ndarray:
        return self.database.search_numpy("rows", query, K, **self.search_args)[0]


class LanceDb:
    """By its synchronous interface, with IVF_FLAT."""

    def __init__(self, kind: str, folder: Path) -> None:
        import lancedb
        import pyarrow

        self.pa, self.optimise = pyarrow, kind == "optimised"
        self.database = lancedb.connect(str(folder / "lancedb"))

    def rows(self, ids: np.ndarray, vectors: np.ndarray) -> Any:
        flat = self.pa.array(vectors.reshape(-1))
        column = self.pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
        return self.pa.table({"id": self.pa.array(ids, self.pa.int64()), "vector": column})

    def build(self, vectors: np.ndarray) -> None:
        rows = self.rows(np.arange(len(vectors)), vectors)
        self.table = self.database.create_table("rows", rows)
        self.table.create_index(
            metric="l2", vector_column_name="vector", index_type="IVF_FLAT", num_partitions=LISTS
        )

    def update(self, ids: np.ndarray, vectors: np.ndarray, durable: bool) -> None:
        merge = self.table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        merge.execute(self.rows(ids, vectors))

    def wait(self) -> None:
        if self.optimise:
            self.table.optimize()

    def search(self, query: np.ndarray) -> np.ndarray:
        asked = self.table.search(query, vector_column_name="vector").distance_type("l2")
        found = asked.limit(K).nprobes(PROBES).select(["id", "_distance"]).to_arrow()
        return found["id"].to_numpy()


def measure(name: str, recipe: Recipe, folder: Path, batch: int) -> dict[str, Any]:
    """Builds, updates, searches."""
    kind, _, effort = name.partition("-")
    durable = effort.endswith("+durable")
    make = {"longbow": Longbow, "lancedb": LanceDb}[kind]
    database = make(effort.removesuffix("+durable"), folder)
    started = time.perf_counter()
    database.build(recipe.base)
    built = time.perf_counter()
    batches = recipe.batches(batch)
    began = time.perf_counter()
    for ids, vectors in batches:
        database.update(ids, vectors, durable)
    updated = time.perf_counter()
    database.wait()
    found = [database.search(query) for query in recipe.queries]
    searching = time.perf_counter()
    found = [database.search(query) for query in recipe.queries]
    ended = time.perf_counter()
    return {
        "database": name,
        "build_s": built - started,
        # All updates count, as in the recipe, also those that a later one of their batch replaces.
        "update_qps": len(recipe.updates) / (updated - began),
        "search_qps": len(recipe.queries) / (ended - searching),
        "recall_at_k": recall(found, recipe.truth()),
    }


def main() -> None:
    name, data, folder, batch = sys.argv[1:]
    told = measure(name, Recipe.load(Path(data)), Path(folder), int(batch))
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
