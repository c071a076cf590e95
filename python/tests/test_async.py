"""The asyncio client: nothing is missing, nothing blocks the loop, all of it works."""

import asyncio
import inspect

import pytest

import longbow
from longbow import AsyncLongbowClient, LongbowClient


@pytest.fixture(scope="session")
def client(remote):
    """Only a server has this."""
    return remote


STREAMS = {"changes", "download_stream", "knn_join", "sql_stream"}
METHODS = sorted(
    name
    for name, _ in inspect.getmembers(LongbowClient, inspect.isfunction)
    if not name.startswith("_")
)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_there_with_its_signature_and_text(name: str) -> None:
    lifted, origin = getattr(AsyncLongbowClient, name), getattr(LongbowClient, name)
    assert inspect.signature(lifted) == inspect.signature(origin)
    assert lifted.__name__ == name
    assert lifted.__doc__.startswith(origin.__doc__.split("Example:")[0].rstrip())
    assert ">>>" not in lifted.__doc__
    if name in STREAMS:
        assert inspect.isasyncgenfunction(lifted)
    else:
        assert inspect.iscoroutinefunction(lifted)


def run(server, body):
    async def main():
        async with AsyncLongbowClient(server.uri, server.meta_uri) as client:
            return await body(client)

    return asyncio.run(main())


def test_insert_search_download_delete(server, dataset) -> None:
    async def body(client):
        rows = [{"id": n, "vector": [float(n), 1.0]} for n in range(100)]
        result = await client.insert(dataset, rows, batch_size=10)
        assert result.rows == 100
        found = await client.search(dataset, [42.2, 1.0], k=2)
        assert found["id"].to_pylist() == [42, 43]
        batches = [batch async for batch in client.download_stream(dataset)]
        assert sum(batch.num_rows for batch in batches) == 100
        joined = [batch async for batch in client.knn_join(dataset, [[7.0, 1.0], [8.0, 1.0]], k=1)]
        assert [n for batch in joined for n in batch["id"].to_pylist()] == [7, 8]
        await client.delete(dataset, 42)
        with pytest.raises(longbow.NotFound):
            await client.get(dataset, 42)

    run(server, body)


def test_calls_run_side_by_side(server, books) -> None:
    async def body(client):
        found = await asyncio.gather(
            *(client.search(books, [0.1, 0.2, 0.3], k=1) for _ in range(32))
        )
        assert {reply["id"][0].as_py() for reply in found} == {"b1"}

    run(server, body)


def test_a_stream_left_early_is_cancelled_and_the_client_goes_on(server, dataset) -> None:
    async def body(client):
        rows = {"id": range(50_000), "vector": [[1.0, 2.0]] * 50_000}
        await client.insert(dataset, rows, batch_size=1000)
        stream = client.download_stream(dataset)
        async for batch in stream:
            assert batch.num_rows > 0
            break
        await stream.aclose()
        assert (await client.get_info(dataset)).rows == 50_000

    run(server, body)
