"""The calls of a client, sent to a server by Arrow Flight."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Callable

import pyarrow as pa
import pyarrow.flight as flight

from . import arrays, sql, vectors
from .answers import AnswerStream
from .backend import Asked, Plain
from .errors import translated
from .join import Join, fits_one_message, query_batches
from .put import put
from .requests import search_ticket
from .results import DatasetInfo, InsertResult
from .session import Session, decode
from .stream import BatchStream

#: Actions that work on data; the others are asked of the meta server.
_ON_DATA = frozenset(["VectorSearchByID", "delete", "delete-dataset"])
#: Actions that answer a word rather than JSON.
_WORDS = frozenset(["delete-dataset"])


class Remote:
    """A server; see :class:`longbow.backend.Backend`."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def call(self, name: str, body: Any = None) -> Any:
        server = self._session.data if name in _ON_DATA else self._session.meta
        told = self._session.action(server, name, body)
        return None if name in _WORDS else decode(told, f"the result of {name}")

    def search(self, dataset: str, vector: Any, options: Mapping[str, Any]) -> pa.Table:
        return AnswerStream(self._session.get(search_ticket(dataset, vector, options))).read_all()

    def nearest(self, dataset: str, given: Any, plain: Plain) -> tuple[Any, Any]:
        k, ef, exact, column = plain
        if exact is not None or column is not None or not vectors.is_many(given):
            return self.nearest_where(dataset, given, Asked(*plain))
        queries = vectors.matrix(given)
        found = self.join(dataset, queries, k, ef).read_all()
        return arrays.places(found, len(queries), k)

    def nearest_where(self, dataset: str, given: Any, asked: Asked) -> tuple[Any, Any]:
        options = asked.options()
        if not vectors.is_many(given):
            return arrays.columns(self.search(dataset, given, options))
        queries = vectors.matrix(given)
        found = self.search(dataset, queries, options)
        return arrays.places(found, len(queries), asked.k)

    def join(self, dataset: str, vectors: Any, k: int, ef: int | None) -> AnswerStream:
        messages = query_batches(dataset, vectors, k, ef)
        return Join(self._session, messages, at_once=fits_one_message(vectors))

    def rows(self, ticket: Mapping[str, Any]) -> BatchStream:
        return BatchStream(self._session.get(ticket, unbounded=True))

    def sql(self, statement: str, parameters: pa.RecordBatch | None) -> BatchStream:
        return sql.run(self._session, statement, parameters)

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
        headers = {} if routing_key is None else {"x-longbow-key": routing_key}
        if durable:
            headers["x-longbow-durable"] = "true"
        if not add_columns:
            headers["x-longbow-add-columns"] = "false"
        return put(self._session, dataset, batches, headers, report)

    def datasets(self) -> list[DatasetInfo]:
        with translated():
            listed = self._session.meta.list_flights(b"", self._session.options())
            return [_info(told) for told in listed]

    def dataset(self, name: str) -> DatasetInfo:
        descriptor = flight.FlightDescriptor.for_path(name)
        with translated():
            return _info(self._session.meta.get_flight_info(descriptor, self._session.options()))

    def schema(self, name: str) -> pa.Schema:
        descriptor = flight.FlightDescriptor.for_path(name)
        with translated():
            told = self._session.data.get_schema(descriptor, self._session.options())
        return told.schema


def _info(told: flight.FlightInfo) -> DatasetInfo:
    path = told.descriptor.path or [b""]
    return DatasetInfo(path[0].decode(), told.schema, told.total_records, told.total_bytes)
