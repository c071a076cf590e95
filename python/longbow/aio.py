"""The client for asyncio: every method of :class:`LongbowClient` as a coroutine.

Arrow's Flight client blocks and lets go of Python's lock while it does, so each
call runs in a thread. Nothing is written twice here: a method is lifted from
the client with its signature, and the type checker sees the same arguments.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Protocol,
    TypeVar,
)

from .client import LongbowClient

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec

    P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class _Stream(Protocol[T_co]):
    """What a call streams back."""

    def __next__(self) -> T_co: ...

    def __iter__(self) -> Iterator[T_co]: ...

    def close(self) -> None: ...


def _coroutine(
    method: Callable[Concatenate[LongbowClient, P], R],
) -> Callable[Concatenate[AsyncLongbowClient, P], Coroutine[Any, Any, R]]:
    """The method as a coroutine that runs it in a thread."""

    async def call(self: AsyncLongbowClient, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(method, self._client, *args, **kwargs)

    _present(call, method)
    return call


def _stream(
    method: Callable[Concatenate[LongbowClient, P], _Stream[T]],
) -> Callable[Concatenate[AsyncLongbowClient, P], AsyncIterator[T]]:
    """The method as an asynchronous iterator; leaving it early cancels the call."""

    async def call(
        self: AsyncLongbowClient, /, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncIterator[T]:
        items = await asyncio.to_thread(method, self._client, *args, **kwargs)
        try:
            while True:
                # A StopIteration can't cross a coroutine: None stands for the end.
                item = await asyncio.to_thread(next, items, None)
                if item is None:
                    return
                yield item
        finally:
            await asyncio.to_thread(items.close)

    _present(call, method)
    return call


def _present(call: Callable[..., Any], method: Callable[..., Any]) -> None:
    """Gives the lifted method the name, signature and text of its origin."""
    functools.update_wrapper(call, method)
    # The examples do not await, so they stay with the client they belong to.
    text, _, _ = (method.__doc__ or "").partition("Example:")
    call.__doc__ = f"{text.rstrip()}\n\n        See :meth:`LongbowClient.{method.__name__}`."


class AsyncLongbowClient:
    """:class:`LongbowClient` for asyncio, with the same arguments.

    Example:
        >>> async def titles() -> list:
        ...     async with AsyncLongbowClient(client.uri, client.meta_uri) as books:
        ...         reply = await books.search("books", [0.1, 0.2, 0.3], k=1, columns=["title"])
        ...         return reply["title"].to_pylist()
        >>> asyncio.run(titles())
        ['Dune']
    """

    def __init__(
        self,
        uri: str = "grpc://127.0.0.1:3000",
        meta_uri: str | None = None,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
        tls_root_certs: bytes | None = None,
    ) -> None:
        self._client = LongbowClient(
            uri, meta_uri, api_key, headers, timeout=timeout, tls_root_certs=tls_root_certs
        )

    insert = _coroutine(LongbowClient.insert)
    delete = _coroutine(LongbowClient.delete)
    search = _coroutine(LongbowClient.search)
    search_numpy = _coroutine(LongbowClient.search_numpy)
    search_by_id = _coroutine(LongbowClient.search_by_id)
    search_many = _coroutine(LongbowClient.search_many)
    get = _coroutine(LongbowClient.get)
    download_arrow = _coroutine(LongbowClient.download_arrow)
    list_datasets = _coroutine(LongbowClient.list_datasets)
    get_info = _coroutine(LongbowClient.get_info)
    sql = _coroutine(LongbowClient.sql)
    delete_dataset = _coroutine(LongbowClient.delete_dataset)
    create_namespace = _coroutine(LongbowClient.create_namespace)
    delete_namespace = _coroutine(LongbowClient.delete_namespace)
    list_namespaces = _coroutine(LongbowClient.list_namespaces)
    snapshot = _coroutine(LongbowClient.snapshot)
    backup = _coroutine(LongbowClient.backup)
    status = _coroutine(LongbowClient.status)
    ready = _coroutine(LongbowClient.ready)
    wait_until_indexed = _coroutine(LongbowClient.wait_until_indexed)
    close = _coroutine(LongbowClient.close)

    changes = _stream(LongbowClient.changes)
    knn_join = _stream(LongbowClient.knn_join)
    download_stream = _stream(LongbowClient.download_stream)
    sql_stream = _stream(LongbowClient.sql_stream)

    async def __aenter__(self) -> AsyncLongbowClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"Async{self._client!r}"
