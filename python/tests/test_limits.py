"""At the memory limit: refused with figures, and the way out stays open."""

import numpy as np
import pytest
from server import Server

import longbow

MATRIX = np.zeros((50_000, 128), "f4")


def test_a_full_server_refuses_rows_and_still_deletes(tmp_path) -> None:
    server = Server(tmp_path / "data", "--memory-limit", "64MiB")
    try:
        with longbow.connect(server.uri, server.meta_uri) as client:
            with pytest.raises(longbow.ResourceExhausted) as caught:
                for n in range(10):
                    client.insert("d", MATRIX, ids=range(n * 50_000, (n + 1) * 50_000))
            assert caught.value.code == "memory_limit"
            assert "67108864" in caught.value.message
            before = client.get_info("d").rows
            assert 0 < before < 500_000
            client.delete("d", range(100))
            assert client.get_info("d").rows == before - 100
            assert client.search("d", MATRIX[0], k=1).num_rows == 1
            client.delete_dataset("d")
            assert client.list_datasets() == []
    finally:
        server.kill()
