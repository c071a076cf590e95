"""Checks that write: DoPut, DoExchange ingest, deletes, namespaces, graph, snapshots."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight
from perf.client import action, action_json, dataset_ticket, get, path, put, row_count, search_ticket
from perf.data import Mixture, Spec, vectors_of
from perf.run import plain_vector

from .checks_read import K, Subject, expect, refusal
from .commands import probe

# Rows beyond those that `upload` put: replaced, ingested and deleted again by the checks here.
INGEST_FIRST = 1000
INGEST_BATCHES = 3
INGEST_ROWS = 10


def upload(subject: Subject) -> str:
    """All rows are acknowledged, searchable and counted; whether they are on the disk already is said."""
    batches = list(subject.mixture.batches())
    acks = put(subject.servers.data, subject.name, subject.mixture.schema(), batches)
    said = [ack for ack in acks if ack]
    for ack in said:
        expect(
            isinstance(ack.get("durable"), bool), f"an acknowledgement does not say if it is durable: {ack}"
        )
        expect(ack.get("searchable") is True, f"an acknowledgement is not searchable: {ack}")
    held = row_count(subject.servers, subject.name)
    expect(held == subject.rows, f"{subject.rows} rows were put, the server holds {held}")
    return f"{held} rows, {len(said)} acknowledgements"


def _made(subject: Subject, first: int, rows: int) -> pa.RecordBatch:
    """New rows with ids from `first`, their vectors far from the uploaded ones."""
    rng = np.random.default_rng(first)
    vectors = (rng.standard_normal((rows, subject.mixture.spec.width)) + 50).astype(np.float32)
    return subject.mixture.make_batch(np.arange(first, first + rows), np.zeros(rows, np.int64), vectors)


def exchange_probe(subject: Subject) -> str:
    """Messages of no known kind are answered one by one, and the stream ends without an error."""
    found = probe(subject.servers, 2)
    return f"{found['answered']} answers, {found['acks']} visible acks"


def exchange_ingest(subject: Subject) -> str:
    """Each batch is acknowledged in turn, and its rows are found by a search that starts after the last."""
    writer, reader = subject.servers.data.do_exchange(
        flight.FlightDescriptor.for_path("ingest", subject.name)
    )
    acks = []
    try:
        writer.begin(subject.mixture.schema())
        for number in range(INGEST_BATCHES):
            writer.write_batch(_made(subject, INGEST_FIRST + number * INGEST_ROWS, INGEST_ROWS))
            acks.append(json.loads(reader.read_chunk().app_metadata.to_pybytes()))
        writer.done_writing()
    finally:
        writer.close()
    expect([ack["status"] for ack in acks] == ["acked"] * INGEST_BATCHES, f"acknowledgements: {acks}")
    expect(sum(ack["rows"] for ack in acks) == INGEST_BATCHES * INGEST_ROWS, f"acknowledged rows: {acks}")
    last = INGEST_FIRST + INGEST_BATCHES * INGEST_ROWS - 1
    vector = plain_vector(vectors_of(pa.chunked_array([_made(subject, last - 9, 10)["vector"]]))[9])
    found = get(subject.servers.data, search_ticket(subject.name, vector, 1))["id"].to_pylist()
    expect(found == [last], f"row {last} was acknowledged, a search for it found {found}")
    return f"{INGEST_BATCHES} batches"


def replace(subject: Subject) -> str:
    """A put of an id that exists replaces the row: the count stays, and the new vector is found."""
    before = row_count(subject.servers, subject.name)
    batch = _made(subject, 3, 1)
    put(subject.servers.data, subject.name, subject.mixture.schema(), [batch])
    after = row_count(subject.servers, subject.name)
    expect(before == after, f"{before} rows before, {after} after")
    vector = plain_vector(vectors_of(pa.chunked_array([batch["vector"]]))[0])
    reply = get(subject.servers.data, search_ticket(subject.name, vector, 1))
    expect(reply["id"].to_pylist() == [3], f"the new row 3 is not found, but {reply['id'].to_pylist()}")
    expect(reply["distance"][0].as_py() < 1e-3, "the search still sees the old row 3")
    return f"{after} rows as before"


def refuse_dimension(subject: Subject) -> str:
    """A batch of another dimension is InvalidArgument, and changes nothing."""
    spec = subject.mixture.spec
    other = Mixture(Spec(10, spec.dim + 1, text_field=spec.text_field))
    before = row_count(subject.servers, subject.name)
    text = refusal(
        lambda: put(subject.servers.data, subject.name, other.schema(), list(other.batches())),
        pa.ArrowInvalid,
        "a batch with another dimension",
    )
    after = row_count(subject.servers, subject.name)
    expect(before == after, f"{before} rows before the refusal, {after} after")
    return text


def delete(subject: Subject) -> str:
    """Deleted rows are gone from a download, from a filtered one, and from searches of both kinds."""
    client = subject.servers.data
    gone = [7, 8, 9]
    action(client, "delete", {"dataset": subject.name, "id": gone[0]})
    action(client, "delete", {"dataset": subject.name, "ids": gone[1:]})
    filters = [{"field": "id", "operator": "<", "value": 20}]
    for ticket in (dataset_ticket(subject.name), dataset_ticket(subject.name, filters=filters)):
        back = set(gone).intersection(get(client, ticket)["id"].to_pylist())
        expect(not back, f"deleted rows {sorted(back)} came back in a download")
    for row in gone:
        for exact in (None, True):
            ticket = search_ticket(subject.name, subject.vector(row), K, exact=exact)
            found = get(client, ticket)["id"].to_pylist()
            expect(not set(gone).intersection(found), f"deleted rows came back in a search: {found}")
            expect(len(found) == K, f"{len(found)} of {K} results after the delete")
    return f"{len(gone)} rows"


def delete_unknown(subject: Subject) -> str:
    """Deleting an id that is not there is NotFound."""
    body = {"dataset": subject.name, "id": 10**12}
    return refusal(
        lambda: action(subject.servers.data, "delete", body), KeyError, "a delete of an unknown id"
    )


def namespaces(subject: Subject) -> str:
    """A namespace is listed after its creation and gone after its deletion."""
    meta, name = subject.servers.meta, subject.name + "_ns"
    action(meta, "CreateNamespace", {"name": name})
    expect(name in action_json(meta, "ListNamespaces")["namespaces"], f"{name} is not listed")
    action(meta, "DeleteNamespace", {"name": name})
    expect(name not in action_json(meta, "ListNamespaces")["namespaces"], f"{name} is still listed")
    return "1 namespace"


def graph(subject: Subject) -> str:
    """An edge that was added is found by a traversal of one hop."""
    client = subject.servers.data
    edge = {"dataset": subject.name, "subject": 1, "predicate": "next", "object": 2, "weight": 1.0}
    action(client, "add-edge", edge)
    paths = action_json(client, "traverse-graph", {"dataset": subject.name, "start": 1, "max_hops": 1})
    expect(any(2 in found["Nodes"] for found in paths), f"node 2 is in none of {paths}")
    return f"{len(paths)} paths"


def snapshot(subject: Subject) -> str:
    """A snapshot is created and named."""
    reply = action_json(subject.servers.data, "ForceSnapshot", {"dataset": subject.name})
    expect(reply.get("status") == "created" and bool(reply.get("snapshot")), f"the reply is {reply}")
    return str(reply["snapshot"])


def delete_dataset(subject: Subject) -> str:
    """A deleted dataset is NotFound."""
    action(subject.servers.data, "delete-dataset", {"dataset": subject.name})
    refusal(lambda: subject.servers.meta.get_flight_info(path(subject.name)), KeyError, "a deleted dataset")
    return ""
