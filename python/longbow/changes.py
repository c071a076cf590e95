"""The change feed: what a server's log says, as it is written."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from queue import SimpleQueue
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from .closing import Closing, close_at_exit
from .errors import translate, translated
from .session import Session, decode, encode

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Change:
    """One entry of the log.

    Attributes:
        sequence: its number; ascending along the log of all datasets.
        timestamp: when it was written.
        kind: ``put``, ``delete``, ``create_dataset``, ``drop_dataset``,
            ``schema`` (the dataset has new columns) or ``namespace``.
        dataset: the dataset it is about, unless that is unknown or none.
        table: the rows of a ``put``, in a feed of one dataset; else None.
    """

    sequence: int
    timestamp: datetime
    kind: str
    dataset: str | None
    table: pa.Table | None


class ChangeStream(Closing):
    """An iterator of changes.

    Leaving it, by ``close()`` or the end of a ``with`` block, ends the feed.

    >>> with client.changes("books") as feed:
    ...     next(feed).kind
    'create_dataset'
    """

    def __init__(self, session: Session, request: dict[str, Any]) -> None:
        self._done = False
        descriptor = flight.FlightDescriptor.for_command(b"sync")
        with translated():
            self._writer, self._reader = session.data.do_exchange(
                descriptor, session.options(unbounded=True)
            )
            self._writer.write_metadata(encode(request))
            self._writer.done_writing()
        # Arrow's read can't be interrupted, and a feed may be silent for hours:
        # another thread reads, a message each time it is asked, so that Ctrl-C
        # ends the waiting.
        self._wanted: SimpleQueue[bool] = SimpleQueue()
        self._read: SimpleQueue[Any] = SimpleQueue()
        self._waiting = False
        work = (self._reader, self._wanted, self._read)
        self._thread = threading.Thread(
            target=_read, args=work, name="longbow-changes", daemon=True
        )
        self._thread.start()
        close_at_exit(self)

    def __iter__(self) -> Iterator[Change]:
        return self

    def __next__(self) -> Change:
        if self._done:
            raise StopIteration
        if not self._waiting:
            self._waiting = True
            self._wanted.put(True)
        try:
            read = self._read.get()
        except (
            BaseException
        ):  # An interrupt. A call left open would hold up the end of the process.
            self.close()
            raise
        self._waiting = False
        if not isinstance(read, Exception):
            return _change(read)
        self._end()
        if isinstance(read, pa.ArrowException):
            raise translate(read) from read
        raise read

    def _end(self) -> None:
        self._done = True
        self._wanted.put(False)
        # The garbage collector may be at work in the very thread.
        if self._thread is not threading.current_thread():
            self._thread.join()
        try:
            self._writer.close()
        except pa.ArrowException:
            pass  # The reader has told why, or nobody asks any more.

    def close(self) -> None:
        """Ends the feed, also while another thread waits for its next change."""
        if not self._done:
            self._reader.cancel()
            self._end()

    def __del__(self) -> None:
        if hasattr(self, "_thread"):
            self.close()


def _read(
    reader: flight.FlightStreamReader, wanted: SimpleQueue[bool], read: SimpleQueue[Any]
) -> None:
    while wanted.get():
        try:
            read.put(reader.read_chunk())
        except Exception as error:  # For the iterating side, which raises it.
            read.put(error)
            return


def _change(chunk: flight.FlightStreamChunk) -> Change:
    told = decode(chunk.app_metadata.to_pybytes(), "a change")
    return Change(
        sequence=told["sequence"],
        timestamp=_EPOCH + timedelta(microseconds=told["timestamp"]),
        kind=told["kind"],
        dataset=told["dataset"],
        table=None if chunk.data is None else pa.Table.from_batches([chunk.data]),
    )
