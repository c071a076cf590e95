"""What carries out the calls of a client: a server, or an engine in this process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Callable, NamedTuple, Optional, Protocol

import pyarrow as pa

from .answers import AnswerStream
from .requests import Filters, filter_list
from .results import DatasetInfo, InsertResult
from .stream import BatchStream

#: The first of what :class:`Asked` names, for whom no more is asked: to name them takes
#: as long as some of the search. ``k``, ``ef``, ``exact`` and ``column``.
Plain = tuple[int, Optional[int], Optional[bool], Optional[str]]


class Asked(NamedTuple):
    """What a search for arrays asks for, beside its vectors."""

    k: int
    ef: int | None
    exact: bool | None
    column: str | None
    filters: Filters = None
    where: str | None = None
    nprobe: int | None = None
    recall_target: float | None = None

    def options(self) -> dict[str, Any]:
        """The same in the form of the wire."""
        return {**self._asdict(), "filters": filter_list(self.filters)}


class Backend(Protocol):
    """The calls, their arguments read and named, their answers of one kind."""

    def call(self, name: str, body: Any = None) -> Any:
        """Carries out an action; what it answers, or None."""

    def search(self, dataset: str, vector: Any, options: Mapping[str, Any]) -> pa.Table:
        """Nearest neighbours of one vector or several, or of a text."""

    def nearest(self, dataset: str, given: Any, plain: Plain) -> tuple[Any, Any]:
        """Ids and distances as numpy arrays, k places to a query; of any rows, and by
        an effort of the usual kind."""

    def nearest_where(self, dataset: str, given: Any, asked: Asked) -> tuple[Any, Any]:
        """The same of some rows, or by another effort."""

    def join(self, dataset: str, vectors: Any, k: int, ef: int | None) -> AnswerStream:
        """Nearest neighbours of many vectors, as they are found."""

    def rows(self, ticket: Mapping[str, Any]) -> BatchStream:
        """Rows of a dataset."""

    def sql(self, statement: str, parameters: pa.RecordBatch | None) -> BatchStream:
        """What a SQL statement answers."""

    def put(
        self,
        dataset: str,
        batches: Iterator[pa.RecordBatch],
        *,
        durable: bool,
        add_columns: bool,
        routing_key: str | None,
        report: Callable[[int, int, bool], None],
    ) -> InsertResult:
        """Inserts batches; returns when all are acknowledged."""

    def datasets(self) -> list[DatasetInfo]:
        """What there is."""

    def dataset(self, name: str) -> DatasetInfo:
        """One of them."""

    def schema(self, name: str) -> pa.Schema:
        """The schema of one of them."""
