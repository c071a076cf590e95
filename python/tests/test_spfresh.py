"""Columns whose vectors are in postings: through deletes, upserts, restarts and damage."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from server import Server, binary

import longbow
from longbow.errors import InvalidArgument

RANDOM = np.random.default_rng(5)
CENTRES = RANDOM.normal(size=(40, 32))
ROWS = (CENTRES[RANDOM.integers(0, 40, 5000)] + 0.4 * RANDOM.normal(size=(5000, 32))).astype("f4")
QUERIES = (CENTRES[RANDOM.integers(0, 40, 50)] + 0.4 * RANDOM.normal(size=(50, 32))).astype("f4")
K = 10


def recall(searched, rows: np.ndarray, ids: np.ndarray) -> float:
    """The share of the true neighbours among `rows` that the answers hold."""
    hits = 0
    for query in QUERIES:
        true = ids[np.argsort(((rows - query) ** 2).sum(1), kind="stable")[:K]]
        found = searched(query)
        assert len(found) == K
        hits += len(np.intersect1d(true, found))
    return hits / (K * len(QUERIES))


def index_of(client, name: str) -> dict:
    (told,) = client.ready(name).indexes
    return told


def folder_files(path: Path) -> set[str]:
    return {file.name.partition("-")[0] + file.suffix for file in path.rglob("*.spfresh")}


def test_rows_are_found_whatever_becomes_of_them(tmp_path: Path) -> None:
    path = tmp_path / "data"
    with longbow.open(path) as database:
        database.insert("rows", ROWS, index="spfresh")
        database.wait_until_indexed("rows")
        told = index_of(database, "rows")
        assert (told["index"], told["rows"]) == ("spfresh", 5000)
        assert told["bytes_per_row"] < 100
        ids = np.arange(5000)
        assert recall(lambda q: database.search_numpy("rows", q, K)[0], ROWS, ids) > 0.97
    # Half of the rows go, a quarter changes place.
    changed = ROWS.copy()
    changed[3000:4000] = ROWS[1000:2000] + 5
    with longbow.open(path) as database:
        database.delete("rows", ids=range(2500))
        database.insert("rows", changed[3000:4000], ids=np.arange(3000, 4000))
        database.wait_until_indexed("rows")
        left = np.arange(2500, 5000)
        assert recall(lambda q: database.search_numpy("rows", q, K)[0], changed[2500:], left) > 0.97
    assert folder_files(path) == {"graph.spfresh", "blocks.spfresh"}
    done = subprocess.run(
        [binary(), "verify", "--data-path", path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with longbow.open(path) as database:
        assert database.ready("rows").rows == 2500
        assert recall(lambda q: database.search_numpy("rows", q, K)[0], changed[2500:], left) > 0.97


def test_as_many_postings_are_read_as_asked_for(client, dataset) -> None:
    client.insert(dataset, ROWS, index="spfresh")
    client.wait_until_indexed(dataset)
    query = QUERIES[0]

    def read(**effort: int) -> tuple[int, list[int]]:
        found = client.search(dataset, query, k=K, **effort)
        return longbow.query_info(found).distance_computations, found["id"].to_pylist()

    few, many = read(nprobe=2), read(nprobe=200)
    assert few[0] < many[0]
    assert many == read(ef=800)
    nearest = client.search(dataset, query, k=K, exact=True)["id"].to_pylist()
    assert many[1] == nearest
    found = client.sql(f"SELECT id FROM vector_search('{dataset}', $1, 10, nprobe => 200)", [query])
    assert found["id"].to_pylist() == nearest
    for where in (None, "id >= 0"):
        found, _ = client.search_numpy(dataset, query, K, nprobe=200, where=where)
        assert found.tolist() == nearest
        both, _ = client.search_numpy(dataset, QUERIES[:2], K, recall_target=1.0, where=where)
        assert both[0].tolist() == nearest
    with pytest.raises(InvalidArgument, match="recall_target"):
        client.search_numpy(dataset, query, recall_target=0)
    for wrong in ({"nprobe": 0}, {"nprobe": 8, "ef": 32}, {"nprobe": 16_385}):
        with pytest.raises(InvalidArgument, match="nprobe"):
            client.search(dataset, query, **wrong)
        with pytest.raises(InvalidArgument, match="nprobe"):
            client.search_numpy(dataset, query, **wrong)


def test_a_graph_has_no_postings_to_count(client, dataset) -> None:
    client.insert(dataset, ROWS, index="hnsw")
    with pytest.raises(InvalidArgument, match="whose effort is ef"):
        client.search(dataset, QUERIES[0], nprobe=8)


def test_a_damaged_block_is_found_and_the_index_built_anew(tmp_path: Path) -> None:
    path = tmp_path / "data"
    with longbow.open(path) as database:
        database.insert("rows", ROWS, index="spfresh")
        database.wait_until_indexed("rows")
    (blocks,) = path.rglob("blocks-*.spfresh")
    damaged = bytearray(blocks.read_bytes())
    # A place may be one that nothing uses any more; so many are not.
    for at in range(1000, len(damaged), 2000):
        damaged[at] ^= 1
    blocks.write_bytes(damaged)
    done = subprocess.run(
        [binary(), "verify", "--data-path", path], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert blocks.name in done.stdout + done.stderr
    with longbow.open(path) as database:
        database.wait_until_indexed("rows")
        ids = np.arange(5000)
        assert recall(lambda q: database.search_numpy("rows", q, K)[0], ROWS, ids) > 0.97
        assert index_of(database, "rows")["rows"] == 5000


ADDED = """
import os, sys, numpy as np, pyarrow as pa, longbow
rows = np.load(sys.argv[2])
database = longbow.open(sys.argv[1])
def column(rows):
    return pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), rows.shape[1])
arrays = [pa.array(np.arange(5000, 10000)), column(rows + 100), column(rows)]
said = {"longbow.index": "spfresh"}
names = ["id", "vector", "other"]
fields = [pa.field(name, array.type, metadata=said) for name, array in zip(names, arrays)]
fields[0] = fields[0].remove_metadata()
database.insert("rows", pa.Table.from_arrays(arrays, schema=pa.schema(fields)))
database.wait_until_indexed("rows")
os._exit(0)
"""


def test_a_column_that_came_before_a_crash_gets_a_file_of_its_own(tmp_path: Path) -> None:
    path, array = tmp_path / "data", tmp_path / "rows.npy"
    np.save(array, ROWS)
    with longbow.open(path) as database:
        database.insert("rows", ROWS, index="spfresh")
        database.wait_until_indexed("rows")
    # Ends without a checkpoint, so that the next start finds the new column in the log.
    subprocess.run([sys.executable, "-c", ADDED, path, array], check=True)
    with longbow.open(path) as database:
        database.wait_until_indexed("rows")
        for column, first in [("vector", 0), ("other", 5000)]:
            found = recall(
                lambda q, column=column: database.search_numpy("rows", q, K, column=column)[0],
                ROWS,
                np.arange(first, first + 5000),
            )
            assert found > 0.97, column
    assert len(list(path.rglob("blocks-*.spfresh"))) == 2
    done = subprocess.run(
        [binary(), "verify", "--data-path", path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_node_may_have_all_columns_in_postings(tmp_path: Path) -> None:
    server = Server(tmp_path / "data", "--vector-index", "spfresh")
    client = longbow.LongbowClient(server.uri, server.meta_uri)
    client.insert("rows", ROWS, metric="cosine")
    client.insert("products", ROWS, metric="dot_product")
    client.insert("graph", ROWS, index="hnsw")
    for name, index in [("rows", "spfresh"), ("products", "hnsw"), ("graph", "hnsw")]:
        client.wait_until_indexed(name)
        assert index_of(client, name)["index"] == index
    where = {"field": "id", "operator": "<", "value": 40}
    found = client.search("rows", QUERIES[0], K, filters=[where])
    assert sorted(found["id"].to_pylist()) == sorted(set(found["id"].to_pylist()))
    assert len(found) == K and max(found["id"].to_pylist()) < 40
    assert server.stop() == 0


def test_a_wrong_kind_is_refused_and_changes_nothing() -> None:
    with longbow.open() as database:
        with pytest.raises(InvalidArgument) as caught:
            database.insert("rows", ROWS[:10], index="ivf")
        assert caught.value.code == "bad_index"
        assert "expected flat, hnsw, spfresh or auto" in caught.value.message
        assert database.list_datasets() == []
        database.insert("rows", ROWS[:10], index="spfresh")
        with pytest.raises(InvalidArgument) as caught:
            database.insert("rows", ROWS[:10], index="hnsw")
        assert caught.value.code == "index_changed"
        assert database.ready("rows").rows == 10


def test_rows_in_memory_need_no_file() -> None:
    table = pa.table({"id": np.arange(5000), "vector": list(ROWS)})
    with longbow.open() as database:
        database.insert("rows", table, index="spfresh")
        database.wait_until_indexed("rows")
        ids = np.arange(5000)
        assert recall(lambda q: database.search_numpy("rows", q, K)[0], ROWS, ids) > 0.97


def test_inner_products_may_be_in_postings_or_by_codes_if_asked() -> None:
    true = set(np.argsort(-(ROWS @ QUERIES[0]))[:K].tolist())
    with longbow.open() as database:
        for name, index, codes in [("postings", "spfresh", None), ("codes", None, "rabitq")]:
            database.insert(name, ROWS, metric="dot_product", index=index, quantization=codes)
            database.wait_until_indexed(name)
            found = database.search(name, QUERIES[0], K, ef=512)["id"].to_pylist()
            assert len(true & set(found)) >= K - 1
