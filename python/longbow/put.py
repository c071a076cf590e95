"""A put: one DoPut stream, written and acknowledged at the same time.

Acknowledgements are read by a thread of their own. Were they read after the
last batch only, a long insert could fill the window of the answers, the server
would stop reading, and both sides would wait for each other.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, Callable

import pyarrow as pa
import pyarrow.flight as flight

from .closing import PATIENCE, Closing, close_at_exit
from .errors import Internal, InvalidArgument, LongbowError, translate
from .results import InsertResult
from .session import Session, decode


class Acknowledgements(Closing):
    """Reads PutResults until the server ends, and adds them up."""

    def __init__(self, reader: flight.FlightMetadataReader) -> None:
        self._reader = reader
        self._thread = threading.Thread(target=self._read, name="longbow-acks", daemon=True)
        self.error: BaseException | None = None
        #: Whether none is missing: after a write that failed, pyarrow throws some away.
        self.exact = True
        self.count = 0
        self.rows = 0
        self.slow_downs = 0
        self.durable = True
        self.searchable = True
        self.last: dict[str, Any] = {}
        self._thread.start()
        close_at_exit(self)

    def _read(self) -> None:
        try:
            while True:
                message = self._reader.read()
                if message is None:
                    return
                self._add(decode(message.to_pybytes(), "an acknowledgement"))
        except Exception as error:  # Kept for the writing thread, which raises it.
            self.error = error

    def _add(self, told: dict[str, Any]) -> None:
        self.count += 1
        self.rows += int(told.get("rows", 0))
        self.slow_downs += told.get("status") == "slow_down"
        self.durable = self.durable and bool(told.get("durable"))
        self.searchable = self.searchable and bool(told.get("searchable"))
        self.last = told

    def close(self) -> None:
        """Waits a while: an interrupt may have kept the put from doing so."""
        self._thread.join(PATIENCE)

    def wait(self) -> None:
        """Until the server has ended its side."""
        self._thread.join()


def put(
    session: Session,
    dataset: str,
    batches: Iterator[pa.RecordBatch],
    headers: Mapping[str, str],
    report: Callable[[int, int, bool], None],
) -> InsertResult:
    """Sends ``batches`` to ``dataset``; returns when all are acknowledged.

    An exception from ``batches`` itself ends the stream, and is raised once
    the rows before it are acknowledged.
    """
    head = next(batches, None)
    if head is None:
        raise InvalidArgument("no_data", "nothing to insert: the data gave no rows and no schema")
    start = time.monotonic()
    descriptor = flight.FlightDescriptor.for_path(dataset)
    try:
        writer, reader = session.data.do_put(
            descriptor, head.schema, session.options(headers, unbounded=True)
        )
    except pa.ArrowException as error:
        raise translate(error) from error
    acks = Acknowledgements(reader)
    sent = _Sent()
    broken: list[BaseException] = []
    try:
        _write(writer, head, batches, sent, report)
    except Exception as error:
        acks.exact = not isinstance(error, pa.ArrowException)
        broken.append(error)
    finally:
        ended = _finish(writer, acks)
    # A broken write is only the echo of the server's refusal, where there is
    # one; without one, the fault is in the caller's data.
    fault = next((f for f in (ended, *broken, acks.error) if f is not None), None)
    if isinstance(fault, pa.ArrowException):
        refused = translate(fault)
        refused.after(acks.rows, counted=True, exact=acks.exact)
        raise refused from fault
    if isinstance(fault, LongbowError):
        fault.after(acks.rows, counted=False)
    if fault is not None:
        raise fault
    report(sent.rows, sent.bytes, True)
    return _result(dataset, sent, acks, time.monotonic() - start)


class _Sent:
    rows = 0
    bytes = 0


def _write(
    writer: flight.FlightStreamWriter,
    head: pa.RecordBatch,
    rest: Iterator[pa.RecordBatch],
    sent: _Sent,
    report: Callable[[int, int, bool], None],
) -> None:
    batch: pa.RecordBatch | None = head
    while batch is not None:
        # The schema went out with the call; a batch without rows adds nothing.
        if batch.num_rows:
            writer.write_batch(batch)
            sent.rows += batch.num_rows
            sent.bytes += batch.nbytes
            report(sent.rows, sent.bytes, False)
        batch = next(rest, None)


def _finish(writer: flight.FlightStreamWriter, acks: Acknowledgements) -> BaseException | None:
    """Ends the stream on both sides; the server's verdict, if it is an error."""
    verdict: BaseException | None = None
    try:
        writer.done_writing()
    except pa.ArrowException:
        acks.exact = False  # The stream is broken: close() below says why.
    acks.wait()
    try:
        writer.close()
    except pa.ArrowException as error:
        verdict = error
    return verdict


def _result(dataset: str, sent: _Sent, acks: Acknowledgements, seconds: float) -> InsertResult:
    if acks.rows != sent.rows:
        raise Internal(
            "short_acknowledgement",
            f"{sent.rows} rows were sent to {dataset!r} and {acks.rows} acknowledged: "
            "insert them again, rows of known ids are replaced",
        )
    return InsertResult(
        dataset=dataset,
        rows=acks.rows,
        batches=acks.count,
        bytes=sent.bytes,
        offset=acks.last.get("offset"),
        durable=acks.durable,
        replicated=acks.last.get("replicated"),
        searchable=acks.searchable,
        slow_downs=acks.slow_downs,
        seconds=seconds,
    )
