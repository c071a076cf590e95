"""The client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .admin import Admin
from .closing import Closing
from .reads import Reads
from .session import Session
from .writes import Writes


class LongbowClient(Writes, Reads, Admin, Closing):
    """A connection to a Longbow server. Any number of threads may share one.

    Args:
        uri: the data server, ``grpc://host:port``, or ``grpcs://`` with TLS.
        meta_uri: the meta server; by default the data server's next port.
        api_key: sent with every call as ``authorization: Bearer …``.
        headers: more headers for every call.
        timeout: seconds for every call but inserts, downloads and joins, which
            take as long as their data; by default no limit.
        tls_root_certs: certificates (PEM) to trust instead of the system's.

    The examples of the methods use a dataset ``books``, four rows with the
    columns ``id``, ``vector`` (three numbers), ``title`` and ``year``.

    Example:
        >>> with LongbowClient(client.uri, client.meta_uri) as other:
        ...     other.get_info("books").rows
        4
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
        self._session = Session(uri, meta_uri, api_key, headers, timeout, tls_root_certs)

    @property
    def uri(self) -> str:
        """The data server's address."""
        return self._session.uri

    @property
    def meta_uri(self) -> str:
        """The meta server's address."""
        return self._session.meta_uri

    def close(self) -> None:
        """Closes the connections; the client can't be used after."""
        self._session.close()

    def __repr__(self) -> str:
        # Neither the key nor the headers: a repr ends up in logs.
        return f"LongbowClient({self.uri!r}, {self.meta_uri!r})"


def connect(
    uri: str = "grpc://127.0.0.1:3000", meta_uri: str | None = None, **options: Any
) -> LongbowClient:
    """A client that has spoken to its server: a wrong address fails here.

    Takes what :class:`LongbowClient` takes.

    Raises:
        Unavailable: nobody answers.

    Example:
        >>> connect(client.uri, client.meta_uri).close()
    """
    client = LongbowClient(uri, meta_uri, **options)
    try:
        client.status()
    except BaseException:
        client.close()
        raise
    return client
