"""Deletes, graph edges, snapshots, and whether the cluster is whole."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight

from .client import Servers, Skipped, action, action_json, dataset_ticket, error_text, get, search_ticket
from .result import Result
from .run import Run, plain_vector
from .search import ask

DELETES = 200
EDGES = 200


def test_delete(run: Run) -> Result:
    """Deletes rows by id, one a call, and looks for them in a whole DoGet and in exact and default searches."""
    truth = run.truth()
    rng = np.random.default_rng(run.spec.seed + 1)
    rows = rng.choice(len(truth.ids), min(DELETES, len(truth.ids)), replace=False)
    gone = {truth.ids[row] for row in rows}
    client = run.servers.data

    def call(row_id: Any) -> bytes:
        return action(client, "delete", {"dataset": run.name, "id": row_id})[0]

    answers = ask(call, [truth.ids[row] for row in rows], warmup=0)
    left = get(client, dataset_ticket(run.name))
    back = gone.intersection(left["id"].to_pylist())
    expected = len(truth.ids) - len(gone)
    found = 0
    for row in rows[:100]:
        vector = plain_vector(truth.vectors[row])
        for exact in (None, True):
            reply = get(client, search_ticket(run.name, vector, run.args.search_k, exact=exact))
            found += len(gone.intersection(reply["id"].to_pylist()))
    problems = [
        f"{len(back)} deleted rows came back in DoGet" if back else "",
        f"{found} deleted rows came back in searches" if found else "",
        f"DoGet gave {left.num_rows} rows, expected {expected}" if left.num_rows != expected else "",
    ]
    texts = [text for text in (answers.first_error, *problems) if text]
    errors = answers.errors + sum(bool(text) for text in problems)
    rate = len(answers.latencies_ms) / answers.elapsed if answers.elapsed else 0.0
    return Result(
        "delete",
        answers.elapsed,
        rate,
        "deletes/s",
        len(gone),
        0,
        answers.latencies_ms,
        errors,
        "; ".join(texts) or None,
    )


def test_graph(run: Run) -> Result:
    """A chain of edges, and a traversal of two hops from its start."""
    client = run.servers.data

    def edge(number: int) -> bytes:
        body = {
            "dataset": run.name,
            "subject": number,
            "predicate": "next",
            "object": number + 1,
            "weight": 1.0,
        }
        return action(client, "add-edge", body)[0]

    answers = ask(edge, range(EDGES), warmup=0)
    paths = action_json(client, "traverse-graph", {"dataset": run.name, "start": 0, "max_hops": 2})
    rate = len(answers.latencies_ms) / answers.elapsed if answers.elapsed else 0.0
    result = Result(
        "graph",
        answers.elapsed,
        rate,
        "edges/s",
        EDGES,
        0,
        answers.latencies_ms,
        answers.errors,
        answers.first_error,
        extra={"paths": len(paths or [])},
    )
    if not paths:
        result.errors += 1
        result.first_error = result.first_error or "the traversal from node 0 found no path"
    return result


def test_snapshot(run: Run) -> Result:
    """`ForceSnapshot` of the dataset."""
    start = time.perf_counter()
    reply = action_json(run.servers.data, "ForceSnapshot", {"dataset": run.name}) or {}
    elapsed = time.perf_counter() - start
    extra = {"snapshot": str(reply.get("snapshot", ""))}
    result = Result(
        "snapshot", elapsed, 1 / elapsed, "per s", run.spec.rows, latencies_ms=[elapsed * 1e3], extra=extra
    )
    if reply.get("status") != "created":
        result.errors, result.first_error = 1, f"expected status created, the server says {reply}"
    return result


def check_cluster(servers: Servers) -> Result:
    """Every member of the cluster is alive, and both servers answer."""
    try:
        status = action_json(servers.meta, "cluster-status") or {}
        action(servers.data, "cluster-status")
    except Skipped as why:
        return Result("cluster", skipped=str(why))
    except (pa.ArrowException, flight.FlightError) as error:
        return Result("cluster", errors=1, first_error=error_text(error))
    members = status.get("members") or []
    down = [member.get("ID", "?") for member in members if member.get("Status", 0) != 0]
    result = Result("cluster", extra={"members": len(members)}, errors=len(down))
    if down:
        result.first_error = "not alive: " + ", ".join(map(str, down))
    elif not members:
        result.errors, result.first_error = 1, f"no members in the reply {status}"
    return result
