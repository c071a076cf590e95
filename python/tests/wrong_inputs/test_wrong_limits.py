"""Limits of memory and disk: refused with figures, what was acknowledged stays, deletes go on."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from server import Server
from wire import Wire, refused
from wrong import EXHAUSTED, GOOD, PATH, Target, Wrong, exchange

import longbow

MEBIBYTE = 1 << 20
LIMIT = 64 * MEBIBYTE


def wide(count: int, start: int = 0) -> pa.RecordBatch:
    """Rows of 1 KiB of vector each."""
    flat = pa.array(np.zeros(count * 256, "f4"))
    ids = pa.array(np.arange(start, start + count))
    return pa.record_batch({"id": ids, "vector": pa.FixedSizeListArray.from_arrays(flat, 256)})


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Target]:
    """A server with as little memory as may be configured."""
    server = Server(tmp_path / "data", "--memory-limit", "64MiB")
    yield Target(server).fill()
    server.kill()


def check_figures(text: str, at_least: int) -> None:
    figures = re.search(r"(\d+) bytes in use, (\d+) more asked for, limit (\d+)", text)
    assert figures is not None, text
    used, asked, limit = map(int, figures.groups())
    assert limit == LIMIT
    assert asked >= at_least
    assert used + asked > limit > used


@pytest.mark.parametrize("how", ["put", "ingest"])
def test_a_batch_beyond_the_memory_limit_is_refused_with_figures(small: Target, how: str) -> None:
    def call(wire: Wire) -> None:
        batch = wide(48 * 1024)
        wire.put("new", batch) if how == "put" else exchange(wire, PATH("ingest", "new"), batch)

    words = ("LONGBOW_MEMORY_LIMIT", "delete data")
    text = small.check_refused(Wrong(how, call, "memory_limit", words, EXHAUSTED))
    check_figures(text, 48 * MEBIBYTE)


def test_a_statement_whose_groups_hold_more_than_they_say_ends_alone(small: Target) -> None:
    small.wire.put("wide", wide(16 * 1024))
    groups = "SELECT a.id, array_agg(b.vector) FROM wide a, wide b GROUP BY a.id"
    with longbow.connect(small.server.uri, small.server.meta_uri) as client:
        with pytest.raises(longbow.ResourceExhausted, match="sql_memory"):
            client.sql(groups)
        assert client.sql("SELECT count(*) AS n FROM wide")["n"].to_pylist() == [16 * 1024]


def test_a_full_server_deletes_and_then_takes_rows_again(small: Target) -> None:
    wire, step = small.wire, 4096
    taken = 0
    with refused(pa.ArrowInvalid, "resource exhausted", "memory_limit: ", str(LIMIT)):
        for _ in range(LIMIT // (step * 1024) + 1):
            wire.put("full", wide(step, taken))
            taken += step
    assert taken > 0
    assert wire.get("full")["id"].to_pylist() == list(range(taken))
    assert wire.act("delete", {"dataset": "full", "ids": list(range(100))}) == [b"deleted"]
    early = {"field": "id", "operator": "<", "value": 200}
    assert wire.act("delete", {"dataset": "full", "filters": [early]}) == [b"deleted"]
    assert wire.get("full")["id"].to_pylist() == list(range(200, taken))
    assert wire.act("delete-dataset", {"dataset": "full"}) == [b"deleted"]
    assert wire.put("full", wide(step))[0]["rows"] == step
    small.check_alive()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MiB of its own."""
    path = tmp_path / "disk"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "longbow-test", str(path)]
    done = subprocess.run(mount, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"mounting is not permitted here: {done.stderr.strip()}")
    yield path
    subprocess.run(["umount", str(path)], check=True)


def enlarge(path: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=128m", str(path)], check=True)


def fill_up(wire: Wire, step: int) -> int:
    """Puts rows until the disk takes no more; how many were acknowledged."""
    taken = 0
    with refused(pa.ArrowInvalid, "resource exhausted", "disk_space: ", "log", "free"):
        for _ in range(100 * MEBIBYTE // (step * 1024)):
            (told,) = wire.put("full", wide(step, taken))
            assert told["rows"] == step
            taken += step
    return taken


def check_rows(wire: Wire, count: int) -> None:
    table = wire.get("full")
    assert table["id"].to_pylist() == list(range(count))
    found = wire.search("full", vector=[0.0] * 256, k=count % 16_384 or 1)
    assert found.num_rows == (count % 16_384 or 1)


@pytest.mark.parametrize("sync", ["true", "false"])
def test_a_full_disk_is_said_and_all_that_was_acknowledged_survives(disk: Path, sync: str) -> None:
    options = ("--storage-async-fsync", sync, "--wal-segment-size", "1MiB")
    server = Server(disk / "data", *options)
    try:
        target = Target(server).fill()
        step = 512
        taken = fill_up(target.wire, step)
        assert taken > step
        check_rows(target.wire, taken)
        # It stays refused, and stays alive for readers.
        with refused(pa.ArrowInvalid, "disk_space: "):
            target.wire.put("full", wide(step, taken))
        check_rows(target.wire, taken)
        assert target.wire.search(GOOD, vector=[3.0, 1.0], k=1)["id"].to_pylist() == [3]
        server.kill()
        enlarge(disk)
        server = Server(disk / "data", *options)
        again = Wire(server.data, server.meta)
        check_rows(again, taken)
        assert again.put("full", wide(step, taken))[0]["rows"] == step
        check_rows(again, taken + step)
    finally:
        server.kill()


def test_writes_go_on_by_themselves_when_there_is_space_again(disk: Path) -> None:
    server = Server(disk / "data", "--wal-segment-size", "1MiB")
    try:
        wire = Wire(server.data, server.meta)
        taken = fill_up(wire, 512)
        enlarge(disk)
        assert wire.put("full", wide(512, taken))[0]["rows"] == 512
        check_rows(wire, taken + 512)
        assert wire.act("delete", {"dataset": "full", "id": 0}) == [b"deleted"]
        assert server.stop() == 0
    finally:
        server.kill()
