"""Many threads on one client and one dataset."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

THREADS, ROUNDS, BATCH = 8, 10, 50


def test_what_each_thread_was_acknowledged_it_finds(client, dataset) -> None:
    def work(thread: int) -> None:
        for round_ in range(ROUNDS):
            first = (thread * ROUNDS + round_) * BATCH
            ids = range(first, first + BATCH)
            vectors = np.array([[n, thread] for n in ids], "f4")
            assert client.insert(dataset, vectors, ids=ids).rows == BATCH
            last = client.search(dataset, vectors[-1], k=1)
            assert (last["id"].to_pylist(), last["distance"].to_pylist()) == ([ids[-1]], [0.0])
            client.delete(dataset, ids[0])

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))
    left = sorted(client.download_arrow(dataset, ["id"])["id"].to_pylist())
    assert left == [n for n in range(THREADS * ROUNDS * BATCH) if n % BATCH]


def test_threads_that_replace_one_row_leave_one_row(client, dataset) -> None:
    def work(thread: int) -> None:
        for _ in range(20):
            client.insert(dataset, {"id": ["only"], "vector": [[float(thread)]]})

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))
    (row,) = client.download_arrow(dataset).to_pylist()
    assert row["id"] == "only" and row["vector"][0] in range(THREADS)
    assert client.search(dataset, row["vector"], k=10)["distance"].to_pylist() == [0.0]


def test_a_download_is_of_one_moment(client, dataset) -> None:
    """Each insert replaces all rows: a reader sees one version of them, never two."""
    ids = range(1000)

    def replace(version: int) -> None:
        client.insert(dataset, np.full((1000, 2), version, "f4"), ids=ids)

    replace(0)
    with ThreadPoolExecutor(2) as pool:
        writes = [pool.submit(replace, version) for version in range(1, 30)]
        while not all(write.done() for write in writes):
            table = client.download_arrow(dataset)
            assert table.num_rows == 1000
            assert len({vector[0] for vector in table["vector"].to_pylist()}) == 1
        for write in writes:
            write.result()
