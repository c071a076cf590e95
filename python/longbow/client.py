"""The client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .admin import Admin
from .changes import ChangeStream
from .checks import check_name, check_seconds
from .closing import Closing
from .fit import Known
from .reads import Reads
from .remote import Remote
from .requests import without_none
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
        if timeout is not None:
            check_seconds("timeout", timeout)
        self._session = Session(uri, meta_uri, api_key, headers, timeout, tls_root_certs)
        self._backend = Remote(self._session)
        self._known = Known(self._backend.schema)

    @property
    def uri(self) -> str:
        """The data server's address."""
        return self._session.uri

    @property
    def meta_uri(self) -> str:
        """The meta server's address."""
        return self._session.meta_uri

    def status(self) -> dict[str, Any]:
        """The members of the cluster; the one server where there is none.

        Example:
            >>> client.status()["count"]
            1
        """
        told: dict[str, Any] = self._backend.call("cluster-status")
        return told

    def changes(
        self, dataset: str | None = None, *, since: int = 1, follow: bool = False
    ) -> ChangeStream:
        """What was changed, entry by entry of the server's log.

        Args:
            dataset: only the changes of this dataset, puts with their rows;
                None for those of all datasets, without rows.
            since: the first sequence number. After a restart go on with the
                one behind the last that was dealt with.
            follow: wait for what comes, for as long as the server runs; else
                the feed ends where the log does.

        Returns:
            An iterator of :class:`longbow.Change`, which a ``with`` block ends.

        Raises:
            NotFound: no such dataset.
            FailedPrecondition: ``log_purged``: the log begins later than
                ``since``, its text says where; ``schema_grew``: the dataset has
                new columns from here on, follow it anew from the sequence
                number in the text.
            Unavailable: ``node_stopped``: go on when the server is back.

        Example:
            >>> for change in client.changes("books"):
            ...     print(change.kind, change.table and change.table["title"].to_pylist())
            create_dataset None
            put ['Dune', 'Emma', 'Ulysses', 'Solaris']
        """
        if dataset is not None:
            check_name(dataset)
        request = {"from": since, "dataset": dataset, "follow": follow}
        rows = {} if dataset is not None else {"rows": False}
        return ChangeStream(self._session, {**without_none(request), **rows})

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
