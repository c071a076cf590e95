"""What was acknowledged is there after ``kill -9`` and after a restart."""

import numpy as np
import pytest
from server import Server

import longbow

MATRIX = np.random.default_rng(11).random((500, 4), dtype="f4")


def contents(client, dataset) -> list:
    return client.download_arrow(dataset).sort_by("id").to_pylist()


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_everything_is_there_after_the_end(tmp_path, end) -> None:
    server = Server(tmp_path / "data")
    try:
        with longbow.connect(server.uri, server.meta_uri) as client:
            client.insert("d", {"id": range(500), "vector": MATRIX, "n": [1] * 500}, batch_size=50)
            client.insert("d", {"id": [7], "vector": MATRIX[:1], "n": [2]})
            client.snapshot("d")
            client.insert("d", {"id": [500], "vector": MATRIX[:1], "n": [3]})
            client.delete("d", [8, 9])
            client.insert("gone", MATRIX)
            client.delete_dataset("gone")
            client.create_namespace("space")
            before = contents(client, "d")
            schema = client.get_info("d").schema
    finally:
        getattr(server, end)()
    assert len(before) == 499
    server = Server(tmp_path / "data")
    try:
        with longbow.connect(server.uri, server.meta_uri) as client:
            assert contents(client, "d") == before
            assert client.get_info("d").schema == schema
            assert client.get("d", 7)["n"] == 2
            found = client.search("d", MATRIX[42], k=1)
            assert (found["id"].to_pylist(), found["distance"].to_pylist()) == ([42], [0.0])
            assert [info.name for info in client.list_datasets()] == ["d"]
            assert "space" in client.list_namespaces()
            client.wait_until_indexed("d")
            with pytest.raises(longbow.NotFound):
                client.delete("d", 8)
    finally:
        server.kill()


def test_rows_acknowledged_one_by_one_survive_a_kill_at_any_moment(tmp_path) -> None:
    acknowledged = -1
    for round_ in range(5):
        server = Server(tmp_path / "data")
        try:
            with longbow.connect(server.uri, server.meta_uri) as client:
                if acknowledged >= 0:
                    rows = contents(client, "d")
                    assert [row["id"] for row in rows[: acknowledged + 1]] == list(
                        range(acknowledged + 1)
                    )
                for n in range(acknowledged + 1, acknowledged + 1 + 20 * (round_ + 1)):
                    client.insert("d", {"id": [n], "vector": MATRIX[n % 500 : n % 500 + 1]})
                    acknowledged = n
        finally:
            server.kill()
    assert acknowledged == 20 * 15 - 1


def test_an_insert_may_ask_to_be_durable(tmp_path) -> None:
    # So that nothing is synced unless it is asked for.
    server = Server(tmp_path / "data", "--wal-sync-method", "none")
    try:
        with longbow.connect(server.uri, server.meta_uri) as client:
            assert not client.insert("d", MATRIX).durable
            assert client.insert("d", MATRIX, durable=True).durable
            assert not client.insert("d", MATRIX).durable
        headers = {"x-longbow-durable": "perhaps"}
        with longbow.connect(server.uri, server.meta_uri, headers=headers) as client:
            with pytest.raises(longbow.InvalidArgument, match="bad_header.*perhaps.*true or false"):
                client.insert("d", MATRIX)
    finally:
        server.kill()
