"""The calls of a client, carried out by an engine in this process."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

import pyarrow as pa

from . import vectors
from .answers import AnswerStream
from .backend import Asked, Plain
from .errors import Internal, InvalidArgument, LongbowError
from .join import BATCH_QUERIES
from .requests import check_query, flat_conditions, without_none
from .results import QUERY_KEY, DatasetInfo, InsertResult
from .session import decode, encode
from .stream import BatchStream

if TYPE_CHECKING:
    from ._engine import Engine, Rows, SqlRows


class Local:
    """An engine; see :class:`longbow.backend.Backend`."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def call(self, name: str, body: Any = None) -> Any:
        told = self.engine.call(name, b"" if body is None else encode(body))
        return decode(told, f"the result of {name}") if told else None

    def search(self, dataset: str, vector: Any, options: Mapping[str, Any]) -> pa.Table:
        check_query(vector, options)
        search = encode({"dataset": dataset, **without_none(options)})
        queries = None if vector is None else vectors.floats(vector)
        return pa.Table.from_batches([self.engine.search(search, queries, None)])

    def nearest(self, dataset: str, given: Any, plain: Plain) -> tuple[Any, Any]:
        try:
            return self.engine.nearest(dataset, given, *plain)
        except (BufferError, OverflowError, TypeError, ValueError):
            # This is no array of aligned float32, or an option is of another type,
            # which is refused by a code, or made plain.
            pass
        k, ef, exact, column = plain
        is_exact = None if exact is None else bool(exact)
        return self.nearest_where(dataset, given, Asked(k, ef, is_exact, column))

    def nearest_where(self, dataset: str, given: Any, asked: Asked) -> tuple[Any, Any]:
        queries = vectors.floats(given)
        if not len(queries):
            raise vectors.no_vectors()
        return self.engine.nearest_where(_search(dataset, asked), queries)

    def join(self, dataset: str, given: Any, k: int, ef: int | None) -> AnswerStream:
        search = encode({"dataset": dataset, "k": k, **({} if ef is None else {"ef": ef})})
        blocks: Iterator[Any] = iter([given]) if vectors.is_many(given) else iter(given)
        return AnswerStream(_Reader(self._answers(search, blocks)))

    def _answers(self, search: bytes, blocks: Iterator[Any]) -> Iterator[_Chunk]:
        first = 0
        for block in blocks:
            # A block of one vector is a block of several all the same.
            array = vectors.matrix(block)
            if not len(array):
                continue
            queries = vectors.floats(array)
            for start in range(0, len(queries), BATCH_QUERIES):
                part = queries[start : start + BATCH_QUERIES]
                found = self.engine.search(search, part, first + start)
                yield _Chunk(found, _progress(first + start + len(part), found))
            first += len(queries)
        if first == 0:
            raise vectors.no_vectors()

    def rows(self, ticket: Mapping[str, Any]) -> BatchStream:
        rows = self.engine.scan(encode(ticket))
        return BatchStream(_Reader(_each(rows), rows.schema))

    def sql(self, statement: str, parameters: pa.RecordBatch | None) -> BatchStream:
        rows = self.engine.sql(statement, parameters)
        return BatchStream(_Reader(_each(rows), rows.schema))

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
        head = next(batches, None)
        if head is None:
            raise InvalidArgument("no_data", "nothing to insert: no rows and no schema")
        start = time.monotonic()
        rows = sent = 0
        put = self.engine.put(dataset, head.schema, durable, add_columns)
        batch: pa.RecordBatch | None = head
        writing = False
        try:
            while batch is not None:
                if batch.num_rows:
                    writing = True
                    put.write(batch)
                    writing = False
                    rows, sent = rows + batch.num_rows, sent + batch.nbytes
                    report(rows, sent, False)
                batch = next(batches, None)
        except BaseException as error:
            # The rows before the fault are the dataset's.
            put.abandon()
            if isinstance(error, LongbowError):
                error.after(rows, counted=writing)
            raise
        told, count, offset, is_durable, slow_downs = put.finish()
        if told != rows:
            raise Internal("short_acknowledgement", f"{rows} rows sent, {told} acknowledged")
        report(rows, sent, True)
        seconds = time.monotonic() - start
        return InsertResult(
            dataset, told, count, sent, offset, is_durable, 1, True, slow_downs, seconds
        )

    def datasets(self) -> list[DatasetInfo]:
        return [DatasetInfo(*told) for told in self.engine.datasets()]

    def dataset(self, name: str) -> DatasetInfo:
        return DatasetInfo(*self.engine.dataset(name))

    def schema(self, name: str) -> pa.Schema:
        return self.dataset(name).schema


_INT, _BOOL, _STR, _FLOAT = ({kind, type(None)} for kind in (int, bool, str, float))


def _search(dataset: str, asked: Asked) -> bytes:
    """A search as the engine reads it. Those whose filters are plain are remembered:
    writing one takes longer than finding the rows that pass it."""
    conditions = flat_conditions(asked.filters, asked.where)
    k, ef, exact, column, filters, where, nprobe, target = asked
    # What is of another type is refused or made plain when it is written.
    efforts = type(ef) in _INT and type(nprobe) in _INT and type(target) in _FLOAT
    is_plain = type(k) is int and efforts and type(exact) in _BOOL
    if conditions is None or not is_plain or type(column) not in _STR:
        return _written(dataset, asked)
    how = (ef, nprobe, target)
    # An empty list of filters is told from none.
    return _remembered(dataset, k, how, exact, column, where, filters is None, *conditions)


# Typed: 1, 1.0 and true are equal, and not the same condition.
@functools.lru_cache(maxsize=256, typed=True)
def _remembered(
    dataset: str,
    k: int,
    how: tuple[int | None, int | None, float | None],
    exact: bool | None,
    column: str | None,
    where: str | None,
    no_filters: bool,
    *conditions: Any,
) -> bytes:
    each = iter(conditions)
    filters = None if no_filters else list(zip(each, each, each))
    ef, nprobe, target = how
    return _written(dataset, Asked(k, ef, exact, column, filters, where, nprobe, target))


def _written(dataset: str, asked: Asked) -> bytes:
    return encode({"dataset": dataset, **without_none(asked.options())})


class _Chunk(NamedTuple):
    data: pa.RecordBatch
    app_metadata: pa.Buffer | None = None


def _progress(done: int, found: pa.RecordBatch) -> pa.Buffer:
    """What a server says beside its answers to some of many queries."""
    query = found.schema.metadata[QUERY_KEY].decode()
    told = f'{{"queries_done":{done},"queries_asked":{done},"query":{query}}}'
    return pa.py_buffer(told.encode())


class _Reader:
    """Batches, read as Flight's reader is."""

    def __init__(self, chunks: Iterator[_Chunk], schema: pa.Schema | None = None) -> None:
        self._chunks, self._schema = chunks, schema
        self._head: _Chunk | None = None

    @property
    def schema(self) -> pa.Schema:
        if self._schema is None:
            self._head = next(self._chunks)
            self._schema = self._head.data.schema
        return self._schema

    def read_chunk(self) -> _Chunk:
        chunk, self._head = self._head, None
        if chunk is None:
            chunk = next(self._chunks)
            self._schema = self._schema or chunk.data.schema
        return chunk

    def cancel(self) -> None:
        self._chunks, self._head = iter(()), None


def _each(rows: Rows | SqlRows) -> Iterator[_Chunk]:
    while (batch := rows.next_batch()) is not None:
        yield _Chunk(batch)
