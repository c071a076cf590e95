"""An engine and the process it is in: forks of that, and its end."""

import gc
import subprocess
import sys
import threading

import numpy as np
import pytest

import longbow

MATRIX = np.random.default_rng(17).normal(size=(500, 8)).astype("f4")

FORKED = """
import gc, os, sys
import numpy as np, longbow
matrix = np.ones((9, 4), "f4")
database = longbow.open(sys.argv[1])
database.insert("d", matrix)
stream = database.download_stream("d")
put = database._engine.put("d", stream.schema, False, True)
child = os.fork()
if child == 0:
    for call in (
        lambda: database.search_numpy("d", matrix[0]),
        lambda: database.search("d", matrix[0]),
        lambda: database.insert("d", matrix),
        lambda: database.list_datasets(),
        lambda: database.get_info("d"),
        lambda: next(stream),
        put.finish,
    ):
        try:
            call()
        except longbow.FailedPrecondition as error:
            assert error.code == "forked", error
        else:
            os._exit(1)
    database.close()
    del database, stream, put
    gc.collect()
    # As a program ends: with all that is to be done then.
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
put.finish()
del put
database.insert("d", 2 * matrix, ids=range(9, 18))
database.close()
with longbow.open(sys.argv[1]) as again:
    assert again.get_info("d").rows == 18
print("sound")
"""

ENDED = """
import sys, threading
import numpy as np, longbow
database = longbow.open(sys.argv[1])
matrix = np.random.default_rng(1).normal(size=(2000, 32)).astype("f4")
database.insert("d", matrix)

def search():
    database.search_numpy("d", matrix[:100], k=10, exact=True)

def insert():
    database.insert("d", matrix[:100])

def again_and_again(work, begun):
    while True:
        work()
        begun.set()

for work in (search, search, insert, insert):
    begun = threading.Event()
    threading.Thread(target=again_and_again, args=(work, begun), daemon=True).start()
    begun.wait()
sys.stderr = open("/dev/null", "w")  # They are refused in the end.
print("left", flush=True)
"""

LEFT = """
import itertools, sys
import numpy as np, longbow
client = longbow.connect(sys.argv[1], sys.argv[2])
matrix = np.ones((600, 4), "f4")
put = client.insert(sys.argv[3], matrix)
feed = client.changes(sys.argv[3], since=put.offset, follow=True)
next(feed)
feed._wanted.put(True)
feed._wanted.put(True)  # Its thread waits in pyarrow for what does not come.
answers = client.knn_join(sys.argv[3], (matrix for _ in itertools.count()), k=1)
next(answers)
print("left", flush=True)
"""


REFUSED = """
import sys
import numpy as np, longbow
client = longbow.connect(sys.argv[1], sys.argv[2])
matrix = np.ones((400, 4), "f4")
client.insert(sys.argv[3], matrix)
refused = 0
for blocks in 100 * [[matrix[:3]], 3 * [matrix]]:
    try:
        list(client.knn_join(sys.argv[3], iter(blocks), k=0))
    except longbow.InvalidArgument as error:
        refused += error.code == "bad_k"
client.close()
print(refused, flush=True)
"""


def run(program: str, *arguments: object) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_a_fork_is_refused_and_leaves_the_engine_to_its_parent(tmp_path) -> None:
    ended = run(FORKED, tmp_path / "data")
    assert (ended.returncode, ended.stdout) == (0, "sound\n"), ended.stderr


def test_a_process_may_end_while_threads_are_in_the_engine(tmp_path) -> None:
    ended = run(ENDED, tmp_path / "data")
    assert (ended.returncode, ended.stdout) == (0, "left\n"), ended.stderr
    with longbow.open(tmp_path / "data") as database:
        assert database.get_info("d").rows >= 2000


def test_a_process_may_end_with_open_streams(server, dataset) -> None:
    ended = run(LEFT, server.uri, server.meta_uri, dataset)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "left\n", "")


def test_who_is_refused_may_finish_and_its_process_goes_on(server, dataset) -> None:
    ended = run(REFUSED, server.uri, server.meta_uri, dataset)
    assert (ended.returncode, ended.stdout) == (0, "200\n"), ended.stderr


def test_a_feed_that_is_closed_leaves_no_thread(remote, dataset) -> None:
    put = remote.insert(dataset, MATRIX)
    before = set(threading.enumerate())
    feed = remote.changes(dataset, since=put.offset, follow=True)
    next(feed)
    assert set(threading.enumerate()) > before
    feed.close()
    assert set(threading.enumerate()) <= before


def test_a_database_that_is_dropped_lets_go_of_its_folder(tmp_path) -> None:
    database = longbow.open(tmp_path / "data")
    database.insert("d", MATRIX)
    del database
    gc.collect()
    with longbow.open(tmp_path / "data") as database:
        assert database.get_info("d").rows == len(MATRIX)


def test_places_beyond_the_memory_limit_are_refused() -> None:
    with longbow.open(memory_limit="64MiB") as database:
        database.insert("d", MATRIX[:2])
        with pytest.raises(longbow.ResourceExhausted, match="memory_limit"):
            database.search_numpy("d", MATRIX[[0] * 200], k=16_384)
        ids, distances = database.search_numpy("d", MATRIX[[0, 1]], k=16_384)
        assert ids.shape == distances.shape == (2, 16_384)
        assert ids[1, 0] == 1 and (ids[:, 2:] == -1).all() and np.isinf(distances[:, 2:]).all()
