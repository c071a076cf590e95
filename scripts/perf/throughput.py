"""DoPut, the wait for the index, and DoGet of a whole dataset."""

from __future__ import annotations

import time

import pyarrow.flight as flight

from .client import Skipped, chunks, dataset_ticket, drop, put, row_count, wait_until_indexed
from .result import MB, Result, skipped
from .run import Run


def test_put(run: Run) -> Result:
    """Uploads the dataset; the clock stops when the last batch is acknowledged."""
    if run.args.fresh:
        drop(run.servers, run.name)
    batches = list(run.mixture.batches())
    total = sum(batch.nbytes for batch in batches)
    before = _held(run)
    run.put_started = start = time.perf_counter()
    acks = put(run.servers.data, run.name, run.mixture.schema(), batches)
    elapsed = time.perf_counter() - start
    extra = {"dim": run.spec.dim, "dtype": run.spec.dtype, "batches": len(batches), "acks": len(acks)}
    if before:
        extra["rows_before"] = before
    if any(ack.get("status") == "slow_down" for ack in acks):
        extra["slow_down"] = sum(ack.get("status") == "slow_down" for ack in acks)
    result = Result("put", elapsed, total / MB / elapsed, "MB/s", run.spec.rows, total, extra=extra)
    held = _held(run)
    if held is None:
        extra["rows_held"] = "not told"
    elif held < run.spec.rows:
        result.errors = 1
        result.first_error = f"{run.spec.rows} rows were put, the server says it holds {held}"
    return result


def _held(run: Run) -> int | None:
    """Rows of the dataset, 0 where it does not exist, None where the server does not tell."""
    try:
        return row_count(run.servers, run.name) or 0
    except Skipped:
        return None


def test_index(run: Run) -> Result:
    """Waits until all rows are in the index; after a put, the rate counts from its first byte."""
    started = run.put_started if run.put_started is not None else time.perf_counter()
    try:
        reply = wait_until_indexed(run.servers.data, run.name, run.args.index_timeout)
    except Skipped as why:
        return skipped("index", f"{why} (searching without waiting for the index)")
    except TimeoutError as why:
        return Result("index", errors=1, first_error=str(why))
    elapsed = time.perf_counter() - started
    rows = int(reply.get("rows") or _held(run) or 0)
    extra = {"counted_from": "put" if run.put_started is not None else "wait"}
    return Result("index", elapsed, rows / elapsed, "rows/s", rows, extra=extra)


def test_get(run: Run) -> Result:
    """Streams the dataset twice without keeping it and times the second pass; with `--filter`, the rows that pass."""
    options = {"filters": run.args.filter} if run.args.filter else {}
    ticket = dataset_ticket(run.name, **options)
    cold, *_ = _stream(run, ticket)
    elapsed, rows, total, batches = _stream(run, ticket)
    extra = {"batches": batches, "first_pass_seconds": round(cold, 6)}
    result = Result("get", elapsed, total / MB / elapsed, "MB/s", rows, total, extra=extra)
    if options:
        result.name = "get_filtered"
    elif (held := _held(run)) is not None and held != rows:
        result.errors = 1
        result.first_error = f"DoGet gave {rows} rows, GetFlightInfo says {held}"
    return result


def _stream(run: Run, ticket: flight.Ticket) -> tuple[float, int, int, int]:
    """Seconds, rows, bytes and batches of one pass."""
    rows = total = batches = 0
    start = time.perf_counter()
    for batch in chunks(run.servers.data, ticket):
        rows += batch.num_rows
        total += batch.nbytes
        batches += 1
    return time.perf_counter() - start, rows, total, batches
