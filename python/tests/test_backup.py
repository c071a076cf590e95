"""Backups as the page for operators says: by a node, a copy of the folder, or of the rows."""

import itertools
import shutil
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

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


def test_a_node_that_is_written_to_makes_a_backup(tmp_path) -> None:
    """What was acknowledged before is in it, and of what comes meanwhile the first part."""
    done = threading.Event()
    first = Server(tmp_path / "data")
    client = longbow.connect(first.uri, first.meta_uri)
    try:
        before = fill(client)
        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(keep_inserting, client, done)
            try:
                while client.get_info("d").rows < len(before) + 100:
                    assert not writing.done(), writing.result()
                made = client.backup("monday")
            finally:
                done.set()
            end = writing.result()
        with pytest.raises(longbow.FailedPrecondition, match="backup_exists"):
            client.backup("monday")
    finally:
        client.close()
        first.kill()
    assert made.path == str(tmp_path / "data-backups" / "monday")
    verify = [binary(), "verify", "--data-path", made.path]
    subprocess.run(verify, check=True)
    with longbow.open(made.path) as copy:
        rows = contents(copy)
        ids = [row["id"] for row in rows]
        came = len(rows) - len(before)
        assert rows[: len(before)] == before and came >= 100
        assert ids[len(before) :] == list(range(10_000, 10_000 + came))
        assert made.rows == len(rows) and 10_000 + came <= end
        hits = copy.search("d", MATRIX[42], k=1)
        assert (hits["id"].to_pylist(), hits["distance"].to_pylist()) == ([42], [0.0])
        # What is written from here on is kept, too.
        copy.delete("d", [42])
    with longbow.open(made.path) as copy:
        assert len(contents(copy)) == len(rows) - 1


def keep_inserting(client: longbow.LongbowClient, done: threading.Event) -> int:
    """Rows one after another; the id behind the last."""
    for at in itertools.count():
        row = {"id": [10_000 + at], "vector": MATRIX[:1], "text": ["late"]}
        client.insert("d", row)
        if done.is_set():
            return 10_001 + at
    raise AssertionError("it counts for ever")


@pytest.mark.parametrize("where", ["memory", "folder"])
def test_a_database_makes_a_backup(tmp_path, where) -> None:
    path = None if where == "memory" else tmp_path / "data"
    with longbow.open(path, backup_path=tmp_path / "backups") as database:
        before = fill(database)
        made = database.backup("a")
        assert (made.datasets, made.rows) == (1, len(before))
    with longbow.open(tmp_path / "backups" / "a") as copy:
        assert contents(copy) == before
        assert copy.search("d", MATRIX[42], k=1)["id"].to_pylist() == [42]


def test_a_backup_that_cannot_be_written_is_refused(tmp_path) -> None:
    (tmp_path / "file").write_text("no folder")
    with longbow.open(backup_path=tmp_path / "file") as database:
        with pytest.raises(longbow.FailedPrecondition, match="backup_refused.*backup_path"):
            database.backup("a")
        for name in ("", "a/b", "../a", "a.partial"):
            with pytest.raises(longbow.InvalidArgument, match="bad_backup_name"):
                database.backup(name)
    assert (tmp_path / "file").read_text() == "no folder"


def test_a_folder_of_an_unfinished_backup_is_no_database(tmp_path) -> None:
    folder = tmp_path / "a.partial"
    for path in (folder, f"{folder}/"):
        with pytest.raises(longbow.FailedPrecondition, match=r"backup_unfinished.*a\.partial"):
            longbow.open(path)
    assert not folder.exists()
