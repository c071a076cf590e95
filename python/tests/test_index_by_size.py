"""Columns without an index, and those that leave its kind to their size."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import numpy as np
from server import Server, binary

import longbow

RANDOM = np.random.default_rng(9)
CENTRES = RANDOM.normal(size=(40, 32))
ROWS = (CENTRES[RANDOM.integers(0, 40, 12_000)] + 0.4 * RANDOM.normal(size=(12_000, 32))).astype(
    "f4"
)


def index_of(client, name: str) -> dict:
    (told,) = client._backend.call("check_readiness", {"dataset": name})["indexes"]
    return told


def wait_for(client, name: str, kind: str) -> None:
    deadline = time.monotonic() + 60
    while (told := index_of(client, name))["index"] != kind:
        assert time.monotonic() < deadline, told
    client.wait_until_indexed(name)


def test_a_flat_column_is_ready_at_once_and_exact() -> None:
    with longbow.open() as database:
        database.insert("rows", ROWS, index="flat")
        assert database.ready("rows")
        told = index_of(database, "rows")
        assert (told["index"], told["auto"], told["rows"], told["bytes"]) == ("flat", False, 0, 0)
        for query in ROWS[:5]:
            found, _ = database.search_numpy("rows", query, 10)
            true = np.argsort(((ROWS - query) ** 2).sum(1), kind="stable")[:10]
            assert sorted(found) == sorted(true)


def test_a_column_gets_the_index_of_its_size_and_keeps_it(tmp_path: Path) -> None:
    server = Server(tmp_path / "data", "--vector-index", "auto")
    client = longbow.LongbowClient(server.uri, server.meta_uri)
    client.insert("rows", ROWS[:9_000])
    client.insert("graph", ROWS[:100], index="hnsw")
    told = index_of(client, "rows")
    assert (told["index"], told["auto"], told["moving_to"]) == ("flat", True, None)
    assert (index_of(client, "graph")["index"], index_of(client, "graph")["auto"]) == (
        "hnsw",
        False,
    )
    client.insert("rows", ROWS[9_000:], ids=np.arange(9_000, 12_000))
    # Whoever waits for the index waits for the one that is yet to be begun.
    client.wait_until_indexed("rows")
    assert index_of(client, "rows")["index"] == "hnsw"
    assert server.stop() == 0
    server = Server(tmp_path / "data", "--vector-index", "auto")
    client = longbow.LongbowClient(server.uri, server.meta_uri)
    wait_for(client, "rows", "hnsw")
    told = 'SELECT "index", auto, moving_to FROM longbow.indexes'
    table = client.sql(f"{told} WHERE dataset = 'rows'")
    assert table.to_pylist() == [{"index": "hnsw", "auto": True, "moving_to": None}]
    client.delete("rows", ids=range(8_000))
    wait_for(client, "rows", "flat")
    found = client.search("rows", ROWS[9_000], 3)
    assert found["id"].to_pylist()[0] == 9_000
    assert server.stop() == 0


def test_a_plan_tells_what_the_size_comes_to() -> None:
    def plan(rows: int) -> dict:
        command = [binary(), "plan", "--rows", str(rows), "--dim", "768", "--json", "-"]
        command += ["--vector-index", "auto", "--memory-limit", "1GiB"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)["index"]

    kinds = [(plan(rows)["kind"], plan(rows)["auto"]) for rows in (9_999, 100_000, 1_000_000)]
    assert kinds == [("flat", True), ("hnsw", True), ("spfresh", True)]
