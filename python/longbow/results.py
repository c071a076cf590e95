"""What calls return, where it is not an Arrow table."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from .errors import InvalidArgument

#: Key of a reply's metadata that holds its :class:`QueryInfo` as JSON.
QUERY_KEY = b"longbow.query"


@dataclass(frozen=True)
class InsertResult:
    """The server's acknowledgements of an insert, added up.

    Attributes:
        dataset: where the rows went.
        rows: rows acknowledged, which is every row that was sent.
        batches: acknowledgements received, one a batch.
        bytes: bytes of Arrow data sent.
        offset: log offset of the last batch; None when nothing was sent.
        durable: whether every batch was acknowledged as durable.
        replicated: the replication watermark of the last batch, as sent.
        searchable: whether every batch was acknowledged as searchable.
        slow_downs: acknowledgements in which the server asked for less speed.
        seconds: from the first byte sent to the last acknowledgement.
        left_out: columns without any value that the dataset does not have: they
            have no type, so they are added with their first value.
    """

    dataset: str
    rows: int
    batches: int
    bytes: int
    offset: int | None
    durable: bool
    replicated: Any
    searchable: bool
    slow_downs: int
    seconds: float
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class Backup:
    """A copy of all datasets.

    Attributes:
        path: its folder, on the machine of the server.
        offset: every write that was acknowledged with this offset of the log,
            or a smaller one, is in it.
        datasets: how many there are in it.
        rows: and rows.
        files: and files.
        bytes: their size.
    """

    path: str
    offset: int
    datasets: int
    rows: int
    files: int
    bytes: int


@dataclass(frozen=True)
class DatasetInfo:
    """A dataset: its name, Arrow schema, rows and bytes."""

    name: str
    schema: pa.Schema
    rows: int
    bytes: int


@dataclass(frozen=True)
class Readiness:
    """Whether a dataset is wholly indexed. True in a condition when it is.

    Attributes:
        status: ``READY``, ``BUSY`` (rows wait for the index; they are found
            nevertheless, by scanning) or ``NOT_FOUND``.
        reason: why not ready, if the server says.
        rows: rows of the dataset, if the server says.
        index_len: rows in the index, if the server says. An index of codes
            begins when 256 rows are there; fewer are scanned, and are not
            waited for.
        indexes: of a dataset, an entry for each vector column: ``column``, what
            its ``index`` is, and what that holds and takes; see docs/wire.md.
    """

    status: str
    reason: str | None = None
    rows: int | None = None
    index_len: int | None = None
    indexes: list[dict[str, Any]] | None = None

    def __bool__(self) -> bool:
        return self.status == "READY"


@dataclass(frozen=True)
class QueryInfo:
    """What a search did, from the metadata that its reply carries.

    Attributes:
        returned: rows in the reply.
        asked: rows asked for, k times the queries.
        strategy: how the candidates were found.
        rows_scanned: rows compared one by one.
        distance_computations: distances computed in all.
        elapsed_us: microseconds within the server.
        short_because: why fewer than ``asked`` came back, why groups may have more
            rows, or that no page follows; or None.
        partial_because: why nearer rows may have been missed: the search ended
            with its ``budget_ms``. None if it looked everywhere.
        cursor: of a page: the cursor of the next one; None after the last row.
        more: whatever else the server told.
    """

    returned: int | None = None
    asked: int | None = None
    strategy: str | None = None
    rows_scanned: int | None = None
    distance_computations: int | None = None
    elapsed_us: int | None = None
    short_because: Any = None
    partial_because: str | None = None
    cursor: str | None = None
    more: dict[str, Any] = field(default_factory=dict)


def query_info(table: Any) -> QueryInfo:
    """How a search was answered; ``table`` is a reply (a table, batch or schema).

    >>> reply = client.search("books", [0.1, 0.2, 0.3], k=2)
    >>> query_info(reply).returned
    2
    """
    schema = table if isinstance(table, pa.Schema) else table.schema
    text = (schema.metadata or {}).get(QUERY_KEY)
    if text is None:
        raise InvalidArgument("no_query_info", "this table is not the reply of a search")
    told = json.loads(text)
    known = {name for name in QueryInfo.__dataclass_fields__ if name != "more"}
    more = {name: value for name, value in told.items() if name not in known}
    return QueryInfo(**{name: told[name] for name in known if name in told}, more=more)


def explain(table: Any) -> str:
    """:func:`query_info` as lines to read.

    >>> print(explain(client.search("books", [0.1, 0.2, 0.3], k=2)))
    returned               2 of 2
    ...
    """
    info = query_info(table)
    lines = {"returned": f"{info.returned} of {info.asked}"}
    for name in (
        "partial_because",
        "short_because",
        "strategy",
        "rows_scanned",
        "distance_computations",
    ):
        if getattr(info, name) is not None:
            lines[name] = str(getattr(info, name))
    if info.elapsed_us is not None:
        lines["elapsed"] = f"{info.elapsed_us / 1000:.3f} ms"
    lines.update({name: str(value) for name, value in info.more.items()})
    return "\n".join(f"{name:<22} {value}" for name, value in lines.items())
