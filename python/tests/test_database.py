"""What only the engine in this process has: a folder that it holds, no wire, numpy in and out."""

import subprocess
import sys
import threading
import time

import numpy as np
import pyarrow as pa
import pytest
from server import Server

import longbow

MATRIX = np.random.default_rng(13).normal(size=(2000, 32)).astype("f4")

KILLED = """
import os, signal, sys
import numpy as np, longbow
database = longbow.open(sys.argv[1])
matrix = np.load(sys.argv[2])
for n in range(len(matrix)):
    database.insert("d", matrix[n : n + 1], ids=[n])
    print(n, flush=True)
    if n == 99:
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def memory():
    with longbow.open() as database:
        yield database


def test_what_was_acknowledged_is_there_after_a_kill(tmp_path) -> None:
    matrix = tmp_path / "matrix.npy"
    np.save(matrix, MATRIX[:200])
    command = [sys.executable, "-c", KILLED, str(tmp_path / "data"), str(matrix)]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    acknowledged = int(ended.stdout.split()[-1])
    assert ended.returncode == -9 and acknowledged == 99
    with longbow.open(tmp_path / "data") as database:
        assert database.get_info("d").rows == 100
        for n in range(100):
            assert database.get("d", n)["vector"] == MATRIX[n].tolist()


def test_a_closed_database_can_be_opened_again(tmp_path) -> None:
    with longbow.open(tmp_path / "data") as database:
        database.insert("d", MATRIX)
        database.wait_until_indexed("d")
    with longbow.open(str(tmp_path / "data")) as database:
        assert database.search_numpy("d", MATRIX[7], k=1)[0].tolist() == [7]


def test_a_closed_database_has_its_index_when_it_is_opened_again(tmp_path) -> None:
    with longbow.open(tmp_path / "data") as database:
        database.insert("d", MATRIX)
        database.wait_until_indexed("d")
    (manifest,) = (tmp_path / "data").glob("MANIFEST")
    saved = manifest.read_bytes()
    with longbow.open(tmp_path / "data") as database:
        assert database.wait_until_indexed("d").index_len == 2000
    # Nothing new, nothing written.
    assert manifest.read_bytes() == saved


@pytest.mark.parametrize("path", [5, b"data", ["data"], "", " ", "a\0b"])
def test_a_path_that_is_none_is_refused(path) -> None:
    with pytest.raises(longbow.InvalidArgument, match="bad_path") as caught:
        longbow.open(path)
    assert repr(path) in caught.value.message


def test_a_path_that_is_a_file_is_refused(tmp_path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"something else")
    with pytest.raises(longbow.FailedPrecondition, match="data_folder_refused") as caught:
        longbow.open(path)
    assert str(path) in caught.value.message
    assert path.read_bytes() == b"something else"


def test_one_process_at_a_time_holds_a_folder(tmp_path) -> None:
    with longbow.open(tmp_path / "data"):
        with pytest.raises(longbow.FailedPrecondition, match="data_folder_locked"):
            longbow.open(tmp_path / "data")
    longbow.open(tmp_path / "data").close()


def test_a_servers_folder_is_a_databases_folder(tmp_path) -> None:
    server = Server(tmp_path / "data")
    try:
        with longbow.connect(server.uri, server.meta_uri) as client:
            client.insert("d", MATRIX)
    finally:
        server.stop()
    with longbow.open(tmp_path / "data") as database:
        assert database.get_info("d").rows == 2000


def test_nothing_is_durable_in_memory(memory, tmp_path) -> None:
    memory.insert("d", MATRIX)
    memory.snapshot()
    assert not memory.insert("d", MATRIX).durable
    with pytest.raises(longbow.InvalidArgument, match="in_memory"):
        memory.insert("d", MATRIX, durable=True)
    with longbow.open(tmp_path / "data", wal_sync_method="none") as database:
        assert not database.insert("d", MATRIX).durable
        assert database.insert("d", MATRIX, durable=True).durable


def test_databases_in_memory_are_apart(memory) -> None:
    memory.insert("d", MATRIX)
    with longbow.open() as other:
        assert other.list_datasets() == []


def test_a_closed_database_refuses(memory) -> None:
    memory.insert("d", MATRIX)
    memory.close()
    memory.close()
    for call in (
        lambda: memory.search("d", MATRIX[0]),
        lambda: memory.search_numpy("d", MATRIX[0]),
        lambda: memory.insert("d", MATRIX),
        lambda: memory.list_datasets(),
    ):
        with pytest.raises(longbow.FailedPrecondition, match="closed"):
            call()


def test_rows_outlive_the_database_that_they_came_from(memory) -> None:
    memory.insert("d", MATRIX)
    table = memory.download_arrow("d")
    memory.close()
    np.testing.assert_array_equal(np.stack(table["vector"].to_numpy()), MATRIX)


def test_settings_are_the_servers(memory) -> None:
    with longbow.open(memory_limit="64MiB", storage_async_fsync=False) as small:
        with pytest.raises(longbow.ResourceExhausted, match="memory_limit.*67108864"):
            for n in range(10):
                matrix = np.zeros((50_000, 32), "f4")
                small.insert("d", matrix, ids=range(n * 50_000, (n + 1) * 50_000))
    with longbow.open(sql_max_length="1KiB") as database:
        with pytest.raises(longbow.LongbowError) as refused:
            database.sql("SELECT 1 -- " + 1024 * "x")
        assert refused.value.code == "sql_too_long"
    for settings, code in [
        ({"memory_limits": "1GiB"}, "unknown_key"),
        ({"listen_addr": "127.0.0.1:0"}, "unknown_key"),
        ({"hnsw_m": "many"}, "bad_value"),
    ]:
        with pytest.raises(longbow.InvalidArgument) as caught:
            longbow.open(**settings)
        assert caught.value.code == code


def test_queries_of_any_kind_are_read(memory) -> None:
    memory.insert("d", MATRIX)
    one = MATRIX[5]
    for query in (
        one,
        one.tolist(),
        tuple(one.tolist()),
        one.astype("f8"),
        one.astype(">f4"),
        pa.array(one),
        np.repeat(one, 2)[::2],
        np.asfortranarray(MATRIX[:9])[5],
    ):
        assert memory.search("d", query, k=1)["id"].to_pylist() == [5]
        assert memory.search_numpy("d", query, k=1)[0].tolist() == [5]
    for queries in (
        MATRIX[:3],
        MATRIX[:3].tolist(),
        list(MATRIX[:3]),
        np.asfortranarray(MATRIX[:3]),
    ):
        assert memory.search("d", queries, k=1)["id"].to_pylist() == [0, 1, 2]
        assert memory.search_numpy("d", queries, k=1)[0].tolist() == [[0], [1], [2]]
    with pytest.raises(longbow.InvalidArgument):
        memory.search("d", np.zeros((2, 2, 2), "f4"))


def test_elements_are_judged_by_the_metric_of_the_dataset(memory) -> None:
    memory.insert("c", MATRIX, metric="cosine")
    memory.insert("c", MATRIX[:1] * np.float32(1e25), ids=[7])
    assert 7 in memory.search_numpy("c", MATRIX[0], k=2)[0]
    memory.insert("e", MATRIX)
    for dataset, factor in [("c", 1e35), ("e", 1e25)]:
        with pytest.raises(longbow.InvalidArgument) as caught:
            memory.insert(dataset, MATRIX[:1] * np.float32(factor), ids=[8])
        assert caught.value.code == "value_too_large"
    assert memory.search_numpy("c", MATRIX[8], k=1)[0].tolist() == [8]


def test_text_that_is_not_utf8_never_reaches_the_log(memory) -> None:
    bad = pa.StringArray.from_buffers(
        1, pa.py_buffer(np.array([0, 2], "i4").tobytes()), pa.py_buffer(b"\xff\xfe")
    )
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([1.0, 2.0], pa.float32()), 2)
    batch = pa.record_batch({"id": pa.array([1]), "vector": vectors, "note": bad})
    with pytest.raises(longbow.InvalidArgument, match="bad_batch"):
        memory.insert("d", batch)
    assert memory.list_datasets() == []


def test_pythons_lock_is_free_while_the_engine_works(memory) -> None:
    memory.insert("d", MATRIX)
    ticks, stop = [], threading.Event()

    def tick() -> None:
        while not stop.is_set():
            ticks.append(None)
            time.sleep(0)  # Offers Python's lock to others; no time passes.

    thread = threading.Thread(target=tick)
    thread.start()
    # One call, of which the engine's part takes a hundred times the rest.
    queries = np.tile(MATRIX, (4, 1))
    before = len(ticks)
    memory.search_numpy("d", queries, k=10, exact=True)
    during = len(ticks) - before
    stop.set()
    thread.join()
    assert during > 10


def test_filters_that_are_equal_and_not_the_same_are_told_apart(memory) -> None:
    memory.insert("d", MATRIX[:20])
    for _ in range(2):
        for filters, expected in [
            (("id", "=", 1), [1]),
            ([("id", "=", 1)], [1]),
            (("id", "=", "1"), [1]),
            (("id", "in", [3, 4]), [3, 4]),
            ([("id", ">", 3), ("id", "<=", np.int64(5))], [4, 5]),
            ([("id", ">", 3), ("id", "<=", 6), ("id", "not_null")], [4, 5, 6]),
            ({"field": "id", "op": "<", "value": 1}, [0]),
            ([], range(20)),
        ]:
            ids, _ = memory.search_numpy("d", MATRIX[0], k=20, filters=filters)
            assert sorted(ids.tolist()) == list(expected), filters
        for filters in [("id", "=", True), ("id", "=", 1.0), ("id", "=", None), ("id", "=")]:
            with pytest.raises(longbow.InvalidArgument):
                memory.search_numpy("d", MATRIX[0], filters=filters)
        with pytest.raises(longbow.InvalidArgument):
            memory.search_numpy("d", MATRIX[0], ef=[], filters=("id", "=", 1))


@pytest.mark.parametrize(
    "asked",
    [{"k": "3"}, {"k": 2.5}, {"k": None}, {"k": 2**70}, {"ef": []}, {"ef": 2**70}, {"column": 7}],
)
def test_an_option_of_another_type_is_refused_with_filters_and_without(memory, asked) -> None:
    memory.insert("d", MATRIX)
    codes = set()
    for filters in [None, ("id", ">=", 0)]:
        for queries in [MATRIX[0], MATRIX[:2].tolist()]:
            with pytest.raises(longbow.InvalidArgument) as refused:
                memory.search_numpy("d", queries, filters=filters, **asked)
            codes.add(refused.value.code)
    assert len(codes) == 1


def test_arrays_that_are_not_aligned_are_searched_for(memory) -> None:
    room = bytearray(1 + MATRIX[:2].nbytes)
    shifted = np.frombuffer(room, "f4", MATRIX[:2].size, offset=1).reshape(MATRIX[:2].shape)
    shifted[:] = MATRIX[:2]
    assert not shifted.flags.aligned
    memory.insert("d", MATRIX)
    assert memory.search_numpy("d", shifted, k=1)[0].tolist() == [[0], [1]]
    assert memory.search_numpy("d", shifted[1], k=1)[0].tolist() == [1]
    assert memory.search("d", shifted[1], k=1)["id"].to_pylist() == [1]
