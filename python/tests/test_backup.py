"""Backups as the page for operators says: a copy of the folder, or of the rows."""

import shutil
import subprocess

import numpy as np
import pyarrow.parquet as parquet
import pytest
from server import Server, binary

import longbow

MATRIX = np.random.default_rng(12).random((2_000, 32), dtype="f4")


def fill(client: longbow.LongbowClient | longbow.Database) -> list:
    """Rows that were replaced and deleted, some in a checkpoint, some in the log alone."""
    client.insert("d", {"id": range(2_000), "vector": MATRIX, "text": ["a word"] * 2_000})
    client.wait_until_indexed("d")
    client.snapshot("d")
    client.insert("d", {"id": [7], "vector": MATRIX[:1], "text": ["others"]})
    client.delete("d", [8, 9])
    return contents(client)


def contents(client: longbow.LongbowClient | longbow.Database) -> list:
    return client.download_arrow("d").sort_by("id").to_pylist()


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_copy_of_the_folder_is_a_node_of_its_own(tmp_path, end) -> None:
    first = Server(tmp_path / "data")
    try:
        with longbow.connect(first.uri, first.meta_uri) as client:
            before = fill(client)
    finally:
        getattr(first, end)()
    shutil.copytree(tmp_path / "data", tmp_path / "backup")
    verify = [binary(), "verify", "--data-path", tmp_path / "backup"]
    subprocess.run(verify, check=True)
    first, second = Server(tmp_path / "data"), Server(tmp_path / "backup")
    try:
        with longbow.connect(first.uri, first.meta_uri) as client:
            client.delete_dataset("d")
        with longbow.connect(second.uri, second.meta_uri) as client:
            assert contents(client) == before
            hits = client.search("d", MATRIX[42], k=1)
            assert (hits["id"].to_pylist(), hits["distance"].to_pylist()) == ([42], [0.0])
    finally:
        first.kill()
        second.kill()


def test_rows_come_back_from_parquet(tmp_path) -> None:
    with longbow.open() as database:
        before = fill(database)
        parquet.write_table(database.download_arrow("d"), tmp_path / "d.parquet")
    with longbow.open() as database:
        database.insert("d", parquet.read_table(tmp_path / "d.parquet"))
        assert contents(database) == before
        assert database.search("d", MATRIX[42], k=1)["id"].to_pylist() == [42]
