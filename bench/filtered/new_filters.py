#!/usr/bin/env python3
"""Searches with filters that were never asked for before: with rows compared one by one, and found by the order of a column.

    .venv/bin/python bench/filtered/new_filters.py [--rows 200000] [--json FILE]

One thread, no index on the vectors, so that next to nothing but the filter is measured. `compared` is the median of the first
three searches of a shape, `sorted` that of the last ones, once the rows are sorted by the column; both with the search of the few rows
that pass. `remembered` is the same filter asked again. Beside it, in the same run, DuckDB counts the rows by the same condition, one
thread, from a table in memory.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent)]

import flags
import longbow
import machine
from table import grid

DIM = 32
BATCH = 100_000
#: Filters of each shape, the first that are counted as compared, and the last that are counted as sorted.
ASKED, FIRST, LAST = 120, 3, 50
TENANTS = 10_000

#: A condition by a number that it was never asked with.
SHAPES: dict[str, Callable[[int], str]] = {
    "one tenant": lambda at: f"tenant = {at}",
    "one name": lambda at: f"name = 'user-{at}'",
    "ten minutes": lambda at: f"moment >= '1970-01-02' AND moment < '1970-01-02T00:{10 + at // 60:02}:{at % 60:02}'",
    "a narrow range": lambda at: f"price >= {at / 1_000} AND price < {at / 1_000 + 0.001}",
}


def batch(first: int, count: int, random: np.random.Generator) -> pa.Table:
    """Rows of a tenant, a price, a name and a time each."""
    vectors = random.standard_normal((count, DIM), dtype=np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIM)
    fields = [pa.field("id", pa.int64()), pa.field("vector", vectors.type, metadata={"longbow.index": "flat"})]
    fields += [pa.field("tenant", pa.int64()), pa.field("price", pa.float64())]
    fields += [pa.field("name", pa.string()), pa.field("moment", pa.timestamp("s"))]
    columns = [
        np.arange(first, first + count),
        vectors,
        random.integers(0, TENANTS, count),
        random.random(count),
        pa.array([f"user-{number}" for number in random.integers(0, TENANTS, count)]),
        np.arange(first, first + count).astype("datetime64[s]"),
    ]
    return pa.table(columns, schema=pa.schema(fields))


def timed(call: Callable[[], Any]) -> float:
    """Microseconds that a call takes."""
    begun = time.perf_counter()
    call()
    return (time.perf_counter() - begun) * 1e6


def measure(name: str, database: longbow.Database, counted: duckdb.DuckDBPyConnection, queries: np.ndarray) -> dict:
    """One shape of filters."""
    shape = SHAPES[name]

    def ask(at: int) -> float:
        return timed(lambda: database.search("docs", queries[at % len(queries)], k=10, where=shape(at)))

    took = [ask(at) for at in range(ASKED)]
    remembered = [ask(ASKED - 1) for _ in range(LAST)]

    def count(at: int) -> float:
        return timed(lambda: counted.execute(f"SELECT count(*) FROM docs WHERE {shape(at)}").fetchall())

    compared, in_order = float(np.median(took[:FIRST])), float(np.median(took[-LAST:]))
    return {
        "filter": name,
        "compared_us": round(compared),
        "sorted_us": round(in_order),
        "remembered_us": round(float(np.median(remembered))),
        "slowest_us": round(max(took)),
        "faster": round(compared / in_order, 1),
        "duckdb_count_us": round(float(np.median([count(at) for at in range(LAST)]))),
    }


def run(rows: int, folder: str) -> list[dict]:
    """All shapes, on a dataset in a folder."""
    random = np.random.default_rng(1)
    counted = duckdb.connect(config={"threads": 1})
    with longbow.open(folder) as database:
        for first in range(0, rows, BATCH):
            some = batch(first, min(BATCH, rows - first), random)
            database.insert("docs", some)
            counted.register("plain", some.drop_columns(["vector"]))
            counted.execute(f"{'INSERT INTO docs' if first else 'CREATE TABLE docs AS'} SELECT * FROM plain")
        database.snapshot()
        queries = random.standard_normal((100, DIM), dtype=np.float32)
        database.search("docs", queries[0], k=10)
        return [measure(name, database, counted, queries) for name in SHAPES]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=flags.positive, default=1_000_000)
    parser.add_argument("--json", metavar="FILE", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        about = machine.describe(Path(folder))
        found = run(args.rows, folder)
    print(*grid(list(found[0]), [list(row.values()) for row in found]), sep="\n")
    if args.json:
        args.json.write_text(json.dumps({"machine": about, "rows": args.rows, "results": found}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
