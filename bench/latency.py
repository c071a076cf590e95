"""Small questions: one row by DoGet beside the bare server, and one search split into its parts."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow.flight as flight
import vectors
from pairs import alternate
from perf.client import connect, dataset_ticket, get, put, query_info, search_ticket, wait_until_indexed
from perf.data import Mixture, Spec
from perf.run import plain_vector
from process import Server

# The part of `longbow.query` that names a step of the server, and the label it gets here.
STEPS = {"plan_us": "plan", "index_us": "index"}
K = 10


def tiny(ours: Server, peer: Server, rounds: int, per_round: int) -> dict[str, Any]:
    """p50 in microseconds of a DoGet of a dataset with one row."""
    clients = [connect(server.data_uri) for server in (ours, peer)]
    row = vectors.batches(vectors.gaussian(1, seed=1))
    ticket = dataset_ticket("tiny")
    for client in clients:
        put(client, "tiny", row[0].schema, row)
        p50(client, ticket, per_round)
    pairs = alternate(
        rounds,
        lambda _: p50(clients[0], ticket, per_round),
        lambda _: p50(clients[1], ticket, per_round),
        ("longbow", "bare"),
        "us",
    )
    for client in clients:
        client.close()
    return pairs.summary() | {"calls_per_round": per_round}


def p50(client: flight.FlightClient, ticket: flight.Ticket, calls: int) -> float:
    """Median microseconds of a call for one row."""
    taken = np.empty(calls)
    for number in range(calls):
        start = time.perf_counter()
        rows = get(client, ticket).num_rows
        taken[number] = time.perf_counter() - start
        if rows != 1:
            raise RuntimeError(f"expected one row, got {rows}")
    return float(np.percentile(taken, 50)) * 1e6


def search(server: Server, rows: int, queries: int, index_timeout: float) -> dict[str, Any]:
    """One search at a time through DoGet: p50, p95, p99, and the p50 of wire, plan and index.

    `wire` is the client's time less the server's own `elapsed_us`: HTTP/2, the ticket's JSON, Arrow, Python.
    """
    spec = Spec(rows, vectors.DIM)
    mixture = Mixture(spec)
    client = connect(server.data_uri)
    stored = mixture.vectors(rows)
    put(client, "search", vectors.schema(), vectors.batches(stored))
    wait_until_indexed(client, "search", index_timeout)
    asked, _ = mixture.queries(queries)
    tickets = [search_ticket("search", plain_vector(query), K) for query in asked]
    for ticket in tickets[:100]:
        get(client, ticket)
    total = np.empty(queries)
    infos: list[dict[str, Any]] = []
    for number, ticket in enumerate(tickets):
        start = time.perf_counter()
        table = get(client, ticket)
        total[number] = (time.perf_counter() - start) * 1e6
        infos.append(query_info(table))
    client.close()
    out: dict[str, Any] = {"unit": "us", "rows": rows, "queries": queries, "k": K, "dim": vectors.DIM}
    out["total"] = {f"p{q}": round(float(np.percentile(total, q)), 1) for q in (50, 95, 99)}
    out["p50_parts"] = parts(total, infos)
    return out


def parts(total: np.ndarray, infos: list[dict[str, Any]]) -> dict[str, float | str]:
    """Median microseconds of each part; a part the server does not tell is `not told`."""
    out: dict[str, float | str] = {}
    if all("elapsed_us" in info for info in infos):
        elapsed = np.array([float(info["elapsed_us"]) for info in infos])
        out["server"] = round(float(np.median(elapsed)), 1)
        out["wire"] = round(float(np.median(total - elapsed)), 1)
    else:
        out["server"] = out["wire"] = "not told"
    for key, label in STEPS.items():
        told = [float(info[key]) for info in infos if key in info]
        out[label] = round(float(np.median(told)), 1) if told else "not told"
    return out
