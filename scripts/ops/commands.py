"""The subcommands but `validate`: each returns what to print and raises what the server refused."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.flight as flight
import pyarrow.parquet as parquet
from perf.client import (
    Servers,
    Skipped,
    action,
    action_json,
    dataset_ticket,
    get,
    path,
    put,
    query_info,
    row_count,
    search_ticket,
)
from perf.data import Mixture, Spec, vectors_of
from perf.run import plain_vector

PUT_BATCH_ROWS = 10_000
SHOWN_ROWS = 20
PROBE_TIMEOUT = 10.0


def cmd_put(servers: Servers, args: Namespace) -> dict[str, Any]:
    """Uploads a file or generated rows."""
    if args.file:
        read = parquet.read_table if args.file.suffix == ".parquet" else feather.read_table
        table = read(args.file)
        schema, batches = table.schema, table.to_batches(max_chunksize=PUT_BATCH_ROWS)
    else:
        spec = Spec(args.rows, args.dim, text_field="meta" if args.with_text else None)
        mixture = Mixture(spec)
        schema, batches = mixture.schema(), list(mixture.batches())
    acks = put(servers.data, args.dataset, schema, batches)
    return {
        "rows_sent": sum(batch.num_rows for batch in batches),
        "acknowledged_batches": len(acks),
        "last_acknowledgement": acks[-1] if acks else None,
        "rows_held": row_count(servers, args.dataset),
    }


def cmd_get(servers: Servers, args: Namespace) -> pa.Table | dict[str, Any]:
    """Downloads rows."""
    wanted = {
        "limit": args.limit,
        "offset": args.offset,
        "columns": args.columns,
        "filters": args.filter,
        "where": args.where,
    }
    options = {key: value for key, value in wanted.items() if value is not None}
    table = get(servers.data, dataset_ticket(args.dataset, **options))
    if args.out:
        parquet.write_table(table, args.out)
        return {"rows": table.num_rows, "bytes": table.nbytes, "file": str(args.out)}
    return table


def describe(info: flight.FlightInfo) -> dict[str, Any]:
    """A FlightInfo as JSON."""
    name = info.descriptor.path[0].decode() if info.descriptor.path else None
    return {
        "name": name,
        "rows": info.total_records,
        "bytes": info.total_bytes,
        "endpoints": len(info.endpoints),
        "schema": {field.name: str(field.type) for field in info.schema},
    }


def cmd_list(servers: Servers, _: Namespace) -> list[dict[str, Any]]:
    """All datasets."""
    return [describe(info) for info in servers.meta.list_flights()]


def cmd_info(servers: Servers, args: Namespace) -> dict[str, Any]:
    """One dataset, with the schema's metadata."""
    info = servers.meta.get_flight_info(path(args.dataset))
    metadata = {key.decode(): value.decode() for key, value in (info.schema.metadata or {}).items()}
    return {**describe(info), "metadata": metadata}


def cmd_delete(servers: Servers, args: Namespace) -> dict[str, Any]:
    """Deletes rows or a dataset."""
    if args.all:
        kind, body = "delete-dataset", {"dataset": args.dataset}
    elif args.id:
        kind, body = "delete", {"dataset": args.dataset, "ids": args.id}
    elif args.filter:
        kind, body = "delete", {"dataset": args.dataset, "filters": args.filter}
    else:
        kind, body = "delete", {"dataset": args.dataset, "where": args.where}
    replies = action(servers.data, kind, body)
    held = None if args.all else row_count(servers, args.dataset)
    return {"reply": replies[0].decode() if replies else "", "rows_held": held}


def cmd_search(servers: Servers, args: Namespace) -> pa.Table:
    """Nearest neighbours; without a vector and a text, those of the first row of the dataset."""
    vector = args.vector
    if vector is None and args.text is None:
        first = get(servers.data, dataset_ticket(args.dataset, limit=1))
        if first.num_rows == 0:
            raise SystemExit(f"{args.dataset} has no rows: put some, or give --vector")
        vector = plain_vector(vectors_of(first["vector"])[0])
    ticket = search_ticket(
        args.dataset,
        vector,
        args.k,
        ef=args.ef,
        exact=args.exact,
        filters=args.filter,
        where=args.where,
        text_query=args.text,
        alpha=args.alpha,
        columns=args.columns,
    )
    return get(servers.data, ticket)


def cmd_similar(servers: Servers, args: Namespace) -> Any:
    """Rows most like a stored one."""
    return action_json(
        servers.data, "VectorSearchByID", {"dataset": args.dataset, "id": args.id, "k": args.k}
    )


def cmd_status(servers: Servers, args: Namespace) -> dict[str, Any]:
    """Members and readiness of both servers, of the mesh and of discovery."""
    readiness = {"dataset": args.dataset} if args.dataset else None
    calls: dict[str, tuple[flight.FlightClient, str, Any]] = {
        "data": (servers.data, "cluster-status", None),
        "meta": (servers.meta, "cluster-status", None),
        "readiness": (servers.data, "check_readiness", readiness),
        "mesh": (servers.meta, "MeshStatus", None),
        "discovery": (servers.meta, "DiscoveryStatus", None),
    }
    return {name: _or_skipped(*call) for name, call in calls.items()}


def _or_skipped(client: flight.FlightClient, kind: str, body: Any) -> Any:
    try:
        return action_json(client, kind, body)
    except Skipped as why:
        return f"skipped: {why}"


def cmd_snapshot(servers: Servers, args: Namespace) -> Any:
    """Forces a snapshot."""
    body = {"dataset": args.dataset} if args.dataset else None
    return action_json(servers.data, "ForceSnapshot", body)


def probe(servers: Servers, messages: int) -> dict[str, int]:
    """Sends messages of an unknown command to DoExchange and waits for an answer to each.

    `acks` counts the answers whose `ack` is visible: pyarrow shows the metadata of an answer without Arrow
    data, not its body, so fewer acks than answers is no fault. An answer that does not come is a time-out.
    """
    schema = pa.schema([("probe", pa.int32())])
    options = flight.FlightCallOptions(timeout=PROBE_TIMEOUT)
    descriptor = flight.FlightDescriptor.for_command(b"ops_probe")
    writer, reader = servers.data.do_exchange(descriptor, options)
    answered = acks = 0
    try:
        writer.begin(schema)
        for number in range(messages):
            writer.write_batch(pa.record_batch([pa.array([number], pa.int32())], schema=schema))
            acks += _answer(reader) == b"ack"
            answered += 1
        writer.done_writing()
    finally:
        writer.close()
    return {"sent": messages, "answered": answered, "acks": acks}


def _answer(reader: flight.FlightStreamReader) -> bytes | None:
    try:
        metadata = reader.read_chunk().app_metadata
    except StopIteration:
        # An answer with neither Arrow data nor metadata looks like an end to pyarrow, and is none.
        return None
    return metadata.to_pybytes() if metadata is not None else None


def cmd_exchange(servers: Servers, args: Namespace) -> dict[str, int]:
    """Probes DoExchange."""
    return probe(servers, args.messages)


def cmd_namespaces(servers: Servers, args: Namespace) -> Any:
    """Creates, deletes, then lists namespaces."""
    if args.create:
        action_json(servers.meta, "CreateNamespace", {"name": args.create})
    if args.delete:
        action_json(servers.meta, "DeleteNamespace", {"name": args.delete})
    return action_json(servers.meta, "ListNamespaces")


COMMANDS: dict[str, Callable[[Servers, Namespace], Any]] = {
    "put": cmd_put,
    "get": cmd_get,
    "list": cmd_list,
    "info": cmd_info,
    "delete": cmd_delete,
    "search": cmd_search,
    "similar": cmd_similar,
    "status": cmd_status,
    "snapshot": cmd_snapshot,
    "exchange": cmd_exchange,
    "namespaces": cmd_namespaces,
}


def show(value: Any, as_json: bool) -> None:
    """Prints what a command returned."""
    if isinstance(value, pa.Table):
        rows = value.slice(0, SHOWN_ROWS).to_pylist()
        summary = {"rows": value.num_rows, "columns": value.column_names, "query": query_info(value)}
        if as_json:
            print(json.dumps({**summary, "data": value.to_pylist()}, default=str))
            return
        for row in rows:
            print({key: _brief(cell) for key, cell in row.items()})
        print(json.dumps(summary))
        return
    print(json.dumps(value, default=str, indent=None if as_json else 2))


def _brief(cell: Any) -> Any:
    if isinstance(cell, list) and len(cell) > 4:
        return f"[{cell[0]:.4g}, {cell[1]:.4g}, … {len(cell)} numbers]"
    return cell
