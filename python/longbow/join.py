"""A k-NN join: many queries over one DoExchange, answers as they are found."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from . import vectors
from .answers import AnswerStream
from .closing import PATIENCE, close_at_exit
from .errors import InvalidArgument, translated
from .session import Session

#: Queries in one message. Enough to keep the server's cores busy, few enough
#: that the first answers come soon.
BATCH_QUERIES = 512


def query_batches(dataset: str, queries: Any, k: int, ef: int | None) -> Iterator[pa.RecordBatch]:
    """The messages of a join: a row per query.

    ``queries`` is what :func:`longbow.vectors.matrix` takes, or an iterator of
    such blocks.

    >>> [batch.num_rows for batch in query_batches("books", [[1, 2]] * 600, 5, None)]
    [512, 88]
    """
    for name, number, code in (("k", k, "bad_k"), ("ef", ef, "bad_value")):
        if number is not None and not -(2**31) <= number < 2**31:
            raise InvalidArgument(code, f"{name} is {number}, which is beyond all limits")
    blocks: Iterator[Any] = iter([queries]) if vectors.is_many(queries) else iter(queries)
    for block in blocks:
        array = vectors.matrix(block)
        for start in range(0, len(array), BATCH_QUERIES):
            yield _message(dataset, array.slice(start, BATCH_QUERIES), k, ef)


def _message(dataset: str, array: pa.Array, k: int, ef: int | None) -> pa.RecordBatch:
    rows, dim = len(array), array.type.list_size
    flat = array.flatten().cast(pa.float32())
    offsets = pa.array(range(0, (rows + 1) * dim, dim), pa.int32())
    columns = {
        "dataset": pa.array([dataset] * rows, pa.string()),
        "k": pa.array([k] * rows, pa.int32()),
        "query_vector": pa.ListArray.from_arrays(offsets, flat),
    }
    if ef is not None:
        columns["ef"] = pa.array([ef] * rows, pa.int32())
    return pa.record_batch(columns)


def fits_one_message(queries: Any) -> bool:
    """Whether all queries are there, and go in one message.

    >>> fits_one_message([[1, 2]] * 512), fits_one_message([[1, 2]] * 513)
    (True, False)
    """
    return vectors.is_many(queries) and len(queries) <= BATCH_QUERIES


class Join(AnswerStream):
    """One exchange. Queries are written by a thread while answers are read.

    A single message is written before any answer is read: where the server
    refuses it, the end of the answers is then not read while the end of the
    queries is being written, which pyarrow does not bear (the process ends). For
    the same reason the exchange begins when there is a message at all.
    """

    def __init__(
        self, session: Session, messages: Iterator[pa.RecordBatch], at_once: bool = False
    ) -> None:
        first = next(messages, None)
        if first is None:
            raise vectors.no_vectors()
        self._first, self._messages = first, messages
        self._fault: Exception | None = None
        descriptor = flight.FlightDescriptor.for_command(b"VectorSearch")
        with translated():
            self._writer, reader = session.data.do_exchange(
                descriptor, session.options(unbounded=True)
            )
        super().__init__(reader)
        self._thread: threading.Thread | None = None
        if at_once:
            self._write()
        else:
            self._thread = threading.Thread(target=self._write, name="longbow-join", daemon=True)
            self._thread.start()
        close_at_exit(self)

    def _wait(self, seconds: float | None = None) -> None:
        """Until all is written."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _write(self) -> None:
        try:
            self._writer.begin(self._first.schema)
            self._writer.write_batch(self._first)
            for message in self._messages:
                self._writer.write_batch(message)
        except Exception as error:  # Kept for the reading side, which raises it.
            self._fault = error
        try:
            self._writer.done_writing()
        except pa.ArrowException:
            pass  # The stream is broken already, and the reader knows why.

    def _ended(self, error: pa.ArrowException | None) -> None:
        self._wait()
        closed = self._close_writer()
        fault = self._fault
        if fault is not None and not isinstance(fault, pa.ArrowException):
            # The caller's own data failed; what the server made of it is an echo.
            raise fault
        super()._ended(error or closed or fault)

    def _close_writer(self) -> pa.ArrowException | None:
        try:
            self._writer.close()
        except pa.ArrowException as error:
            return error
        return None

    def _close_at_exit(self) -> None:
        super().close()
        self._wait(PATIENCE)

    def close(self) -> None:
        """Cancels the exchange, unless it is over."""
        if not self._done:
            super().close()
            self._wait()
            self._close_writer()
