"""Checks that only read: DoGet, searches, schemas, refusals, readiness."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight
from perf.client import (
    Servers,
    Skipped,
    action,
    action_json,
    dataset_ticket,
    error_text,
    get,
    is_unimplemented,
    path,
    search_ticket,
    wait_until_indexed,
)
from perf.data import Mixture
from perf.exact import Truth
from perf.run import plain_vector

K = 5
EXCHANGE_QUERIES = 4


class Failed(Exception):
    """A check found something that is not as the contract says."""


@dataclass
class Subject:
    """What the checks work on: the servers, and a dataset with its rows as generated."""

    servers: Servers
    name: str
    mixture: Mixture

    @property
    def rows(self) -> int:
        """Rows uploaded at first."""
        return self.mixture.spec.rows

    def truth(self) -> Truth:
        """The rows as generated."""
        return Truth(list(range(self.rows)), self.mixture.vectors(self.rows), "euclidean")

    def vector(self, row: int) -> list[float]:
        """A stored row's vector as JSON numbers."""
        return plain_vector(self.mixture.vectors(self.rows)[row])


def expect(condition: bool, text: str) -> None:
    """Raises `Failed` with the text unless the condition holds."""
    if not condition:
        raise Failed(text)


def refusal(call: Callable[[], Any], kind: type[Exception], what: str) -> str:
    """The server's text when a call is refused with an error of the kind; anything else fails."""
    try:
        call()
    except kind as error:
        return error_text(error)
    except (pa.ArrowException, flight.FlightError) as error:
        if is_unimplemented(error):
            raise Skipped(error_text(error)) from error
        raise Failed(
            f"{what}: expected {kind.__name__}, got {type(error).__name__}: {error_text(error)}"
        ) from error
    raise Failed(f"{what}: the server accepted it")


def download_all(subject: Subject) -> str:
    """Every row comes back once, with its vector unchanged."""
    table = get(subject.servers.data, dataset_ticket(subject.name))
    expect(
        sorted(table["id"].to_pylist()) == list(range(subject.rows)),
        f"ids of {table.num_rows} rows are wrong",
    )
    sent = pa.Table.from_batches(list(subject.mixture.batches()))
    order = table.sort_by("id").select(sent.column_names).cast(sent.schema)
    expect(order.equals(sent), "the rows are not the rows that were put")
    return f"{table.num_rows} rows"


def download_filtered(subject: Subject) -> str:
    """`id < 49` by the server is `id < 49` here; the value comes as a string and is cast."""
    filters = [{"field": "id", "operator": "<", "value": "49"}]
    table = get(subject.servers.data, dataset_ticket(subject.name, filters=filters))
    expect(
        sorted(table["id"].to_pylist()) == list(range(49)),
        f"expected ids 0 to 48, got {table['id'].to_pylist()}",
    )
    return f"{table.num_rows} rows filtered"


def schema(subject: Subject) -> str:
    """GetSchema has the columns with their types."""
    found = subject.servers.data.get_schema(path(subject.name)).schema
    for field in subject.mixture.schema():
        position = found.get_field_index(field.name)
        expect(position >= 0, f"column {field.name} is missing")
        expect(
            found.field(position).type == field.type,
            f"column {field.name} has type {found.field(position).type}",
        )
    return f"{len(found)} columns"


def flight_info(subject: Subject) -> str:
    """GetFlightInfo knows the rows."""
    info = subject.servers.meta.get_flight_info(path(subject.name))
    expect(info.total_records == subject.rows, f"expected {subject.rows} rows, got {info.total_records}")
    expect(len(info.endpoints) >= 1, "there is no endpoint")
    return f"{info.total_records} rows"


def listed(subject: Subject) -> str:
    """ListFlights has the dataset."""
    names = [info.descriptor.path[0].decode() for info in subject.servers.meta.list_flights()]
    expect(subject.name in names, f"{subject.name} is not among {names[:20]}")
    return f"{len(names)} datasets"


def _search(subject: Subject, row: int, **options: Any) -> pa.Table:
    return get(subject.servers.data, search_ticket(subject.name, subject.vector(row), K, **options))


def _check_reply(subject: Subject, table: pa.Table, row: int, mask: np.ndarray | None = None) -> None:
    """The ids are the true neighbours, best first, with score 1 / (1 + distance)."""
    truth = subject.truth()
    query = truth.vectors[row]
    true = truth.nearest(query[None, :], K, mask)[0]
    ids = table["id"].to_pylist()
    expect(ids == [truth.ids[i] for i in true], f"expected ids {true.tolist()}, got {ids}")
    distances = truth.distances(query, true)
    expect(np.allclose(table["distance"].to_numpy(), distances, atol=1e-3), "distances are wrong")
    expect(
        np.allclose(table["score"].to_numpy(), 1 / (1 + distances), atol=1e-3),
        "scores are not 1/(1+distance)",
    )


def search(subject: Subject) -> str:
    """The true neighbours of a stored row, itself first."""
    table = _search(subject, 7)
    _check_reply(subject, table, 7)
    return f"{table.num_rows} results"


def search_filtered(subject: Subject) -> str:
    """The true neighbours among the rows that pass the filter."""
    table = _search(subject, 7, filters=[{"field": "id", "operator": ">=", "value": 50}])
    _check_reply(subject, table, 7, np.arange(subject.rows) >= 50)
    return f"{table.num_rows} results"


def search_nested(subject: Subject) -> str:
    """A filter of filters: category 1 or 2."""
    parts = [{"field": "category", "operator": "=", "value": value} for value in (1, 2)]
    table = _search(subject, 7, filters=[{"logic": "OR", "filters": parts}])
    _check_reply(subject, table, 7, np.isin(np.arange(subject.rows) % 10, (1, 2)))
    return f"{table.num_rows} results"


def wrong_dimension(subject: Subject) -> str:
    """A query of another length is InvalidArgument and names both lengths."""
    width = subject.mixture.spec.width
    ticket = search_ticket(subject.name, [0.0] * (width + 1), K)
    text = refusal(
        lambda: get(subject.servers.data, ticket), pa.ArrowInvalid, "a query with one number too many"
    )
    expect(
        str(width) in text and str(width + 1) in text, f"the refusal does not name both dimensions: {text}"
    )
    return text


def by_id(subject: Subject) -> str:
    """The rows most like row 7 are its true neighbours, with or without itself."""
    reply = action_json(subject.servers.data, "VectorSearchByID", {"dataset": subject.name, "id": 7, "k": K})
    truth = subject.truth()
    others = [i for i in truth.nearest(truth.vectors[7][None, :], K + 1)[0].tolist() if i != 7]
    found = [i for i in reply["ids"] if i != 7]
    expect(found == others[: len(found)] and len(reply["ids"]) == K, f"expected {others}, got {reply['ids']}")
    expect(len(reply["scores"]) == len(reply["ids"]), "there is not one score an id")
    return f"{len(reply['ids'])} results"


def hybrid(subject: Subject) -> str:
    """Vector and text in one search, best first."""
    table = _search(subject, 7, text_query="amber", text_columns=["meta"], alpha=0.5)
    scores = table["score"].to_pylist()
    expect(table.num_rows == K, f"expected {K} results, got {table.num_rows}")
    expect(scores == sorted(scores, reverse=True), f"scores do not fall: {scores}")
    return f"{table.num_rows} results"


def unknown_dataset(subject: Subject) -> str:
    """A dataset that is not there is NotFound."""
    ticket = dataset_ticket(subject.name + "_absent")
    return refusal(lambda: get(subject.servers.data, ticket), KeyError, "an unknown dataset")


def unknown_field(subject: Subject) -> str:
    """A filter on a column that is not there is InvalidArgument, not zero rows."""
    ticket = dataset_ticket(subject.name, filters=[{"field": "colour", "operator": "=", "value": 1}])
    return refusal(lambda: get(subject.servers.data, ticket), pa.ArrowInvalid, "an unknown field")


def exchange_search(subject: Subject) -> str:
    """Many queries in one exchange; each result names its query."""
    width = subject.mixture.spec.width
    vectors = subject.mixture.vectors(subject.rows)[:EXCHANGE_QUERIES]
    columns = {
        "dataset": pa.array([subject.name] * EXCHANGE_QUERIES),
        "k": pa.array([K] * EXCHANGE_QUERIES, pa.int32()),
        "query_vector": pa.array([row.tolist() for row in vectors], pa.list_(pa.float32())),
    }
    batch = pa.record_batch(columns)
    writer, reader = subject.servers.data.do_exchange(flight.FlightDescriptor.for_command(b"VectorSearch"))
    try:
        writer.begin(batch.schema)
        writer.write_batch(batch)
        writer.done_writing()
        table = reader.read_all()
    finally:
        writer.close()
    expect(
        table.num_rows == EXCHANGE_QUERIES * K,
        f"{table.num_rows} rows for {EXCHANGE_QUERIES} queries of k={K}",
    )
    truth = subject.truth()
    for number in range(EXCHANGE_QUERIES):
        rows = table.filter(pa.compute.equal(table["query_index"], number))
        true = truth.nearest(vectors[number][None, :width], K)[0].tolist()
        expect(
            rows["id"].to_pylist() == true, f"query {number}: expected {true}, got {rows['id'].to_pylist()}"
        )
    return f"{EXCHANGE_QUERIES} queries, {table.num_rows} results"


def ready(subject: Subject) -> str:
    """check_readiness says READY within ten seconds."""
    try:
        return json.dumps(wait_until_indexed(subject.servers.data, subject.name, 10))
    except TimeoutError as why:
        raise Failed(str(why)) from why


def cluster(subject: Subject) -> str:
    """Both servers answer cluster-status, and every member is alive."""
    status = action_json(subject.servers.meta, "cluster-status")
    action(subject.servers.data, "cluster-status")
    members = status["members"]
    expect(len(members) >= 1 and status["count"] == len(members), f"count and members do not agree: {status}")
    down = [member["ID"] for member in members if member["Status"] != 0]
    expect(not down, f"not alive: {down}")
    return f"{len(members)} members"
