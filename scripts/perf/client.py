"""A thin client of the wire contract, on pyarrow.flight alone.

Nothing here knows Longbow's SDK, so that the scripts measure what any standard client sees and run
against every server that keeps the same contract.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

DEFAULT_DATA_URI = "grpc://127.0.0.1:3000"
DEFAULT_META_URI = "grpc://127.0.0.1:3001"

# gRPC and Arrow append their own context to a server's text; the reader wants the server's text.
_PREFIX = re.compile(r"^Flight returned [a-z ]+ error, with message: ")
_NOISE = (". Detail:", " gRPC client debug context:", ". Client context:", " Client context:")


class Skipped(Exception):
    """The server does not offer what was asked: said as such, never counted as passed."""


def error_text(error: BaseException) -> str:
    """The server's own words of a Flight error, in one line and at most 300 characters."""
    text = _PREFIX.sub("", str(error))
    for mark in _NOISE:
        text = text.split(mark, 1)[0]
    text = " ".join(text.split()).strip("'\" ")
    return (text or type(error).__name__)[:300]


def is_unimplemented(error: BaseException) -> bool:
    """Whether a call failed because the server does not offer it."""
    return isinstance(error, pa.ArrowNotImplementedError)


def connect(uri: str) -> flight.FlightClient:
    """Connects to `grpc://host:port` (or `grpc+tls://`); the connection is made on the first call."""
    if "://" not in uri:
        uri = f"grpc://{uri}"
    return flight.connect(uri)


class Servers:
    """The two Flight servers of a node: `data` for rows and searches, `meta` for what exists."""

    def __init__(self, data_uri: str, meta_uri: str) -> None:
        self.data_uri, self.meta_uri = data_uri, meta_uri
        self.data, self.meta = connect(data_uri), connect(meta_uri)

    def close(self) -> None:
        """Closes both connections."""
        self.data.close()
        self.meta.close()

    def __enter__(self) -> Servers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def path(dataset: str) -> flight.FlightDescriptor:
    """The descriptor of a dataset."""
    return flight.FlightDescriptor.for_path(dataset)


def put(
    client: flight.FlightClient,
    dataset: str,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
) -> list[dict[str, Any]]:
    """Uploads batches and returns after the server has acknowledged all; one dict an acknowledgement."""
    writer, reader = client.do_put(path(dataset), schema)
    acks: list[dict[str, Any]] = []
    try:
        for batch in batches:
            writer.write_batch(batch)
        writer.done_writing()
        while (metadata := reader.read()) is not None:
            body = metadata.to_pybytes()
            acks.append(json.loads(body) if body.startswith(b"{") else {})
    finally:
        writer.close()
    return acks


def dataset_ticket(dataset: str, **options: Any) -> flight.Ticket:
    """A ticket for rows: the bare name for the whole dataset, JSON when something is restricted."""
    if not options:
        return flight.Ticket(dataset)
    return flight.Ticket(json.dumps({"name": dataset, **options}))


def search_ticket(dataset: str, vector: list[float] | None, k: int, **options: Any) -> flight.Ticket:
    """A ticket for a search; options as in the contract, None meaning absent."""
    search: dict[str, Any] = {"dataset": dataset, "k": k}
    if vector is not None:
        search["vector"] = vector
    search.update({key: value for key, value in options.items() if value is not None})
    return flight.Ticket(json.dumps({"search": search}))


def chunks(client: flight.FlightClient, ticket: flight.Ticket) -> Iterator[pa.RecordBatch]:
    """Streams the batches of a DoGet without keeping them."""
    for chunk in client.do_get(ticket):
        if chunk.data is not None:
            yield chunk.data


def get(client: flight.FlightClient, ticket: flight.Ticket) -> pa.Table:
    """The whole reply of a DoGet as a table."""
    return client.do_get(ticket).read_all()


def query_info(table: pa.Table) -> dict[str, Any]:
    """What the server says about a query (`longbow.query` of the schema metadata); empty if it says nothing."""
    metadata = table.schema.metadata or {}
    body = metadata.get(b"longbow.query")
    return json.loads(body) if body else {}


def action(client: flight.FlightClient, kind: str, body: Any = None) -> list[bytes]:
    """Calls a DoAction with a JSON body; raises `Skipped` where the server does not offer it."""
    payload = b"" if body is None else json.dumps(body).encode()
    try:
        return [result.body.to_pybytes() for result in client.do_action(flight.Action(kind, payload))]
    except pa.ArrowNotImplementedError as error:
        raise Skipped(error_text(error)) from error


def action_json(client: flight.FlightClient, kind: str, body: Any = None) -> Any:
    """As `action`, with the first result read as JSON (None if there is no result)."""
    results = action(client, kind, body)
    return json.loads(results[0]) if results and results[0] else None


def row_count(servers: Servers, dataset: str) -> int | None:
    """The rows a dataset holds, None when there is no such dataset; `Skipped` where the server does not tell."""
    try:
        return int(servers.meta.get_flight_info(path(dataset)).total_records)
    except KeyError:
        return None
    except pa.ArrowNotImplementedError as error:
        raise Skipped(error_text(error)) from error


def drop(servers: Servers, dataset: str) -> None:
    """Deletes a dataset; one that is not there is no error."""
    try:
        action(servers.data, "delete-dataset", {"dataset": dataset})
    except KeyError:
        return


def wait_until_indexed(
    client: flight.FlightClient,
    dataset: str,
    timeout: float,
    *,
    interval: float = 0.02,
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, Any]:
    """Asks `check_readiness` until it says READY; returns that reply.

    Raises `Skipped` where the server has no such action, `ArrowKeyError` where it has no such dataset, and
    `TimeoutError` when `timeout` seconds pass.
    """
    deadline = clock() + timeout
    while True:
        reply = action_json(client, "check_readiness", {"dataset": dataset}) or {}
        if reply.get("status") == "READY":
            return dict(reply)
        if reply.get("status") == "NOT_FOUND":
            raise pa.ArrowKeyError(f"check_readiness: the server has no dataset {dataset}")
        if clock() > deadline:
            raise TimeoutError(
                f"{dataset} is not indexed after {timeout:.0f} s, the server says {reply}: "
                "raise --index-timeout, or pass --no-wait to search meanwhile"
            )
        time.sleep(interval)
