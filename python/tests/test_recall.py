"""Recall targets and the recall gauge of the real server, checked against numpy."""

from __future__ import annotations

import json
import re
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight
import pytest
from server import Server

import longbow

RANDOM = np.random.default_rng(11)
ROWS = RANDOM.normal(size=(6000, 48)).astype("f4")
QUERIES = RANDOM.normal(size=(200, 48)).astype("f4")
K = 10


def true_neighbours() -> list[set[int]]:
    squares = (QUERIES**2).sum(1)[:, None] - 2 * QUERIES @ ROWS.T + (ROWS**2).sum(1)
    return [set(row) for row in np.argpartition(squares, K, axis=1)[:, :K].tolist()]


TRUTH = true_neighbours()


@pytest.fixture(scope="module")
def quick(tmp_path_factory) -> Iterator[Server]:
    """A server that may take a core to measure recall, so that nobody waits for it."""
    path: Path = tmp_path_factory.mktemp("recall") / "data"
    server = Server(path, "--recall-share", "1")
    yield server
    assert server.stop() == 0


def insert(server: Server, name: str, **more: object) -> longbow.LongbowClient:
    client = longbow.LongbowClient(server.uri, server.meta_uri)
    client.insert(name, ROWS, **more)
    client.wait_until_indexed(name)
    deadline = time.monotonic() + 60
    while not index_of(client, name)["calibrated"]:
        assert time.monotonic() < deadline, "the index was not calibrated within a minute"
        time.sleep(0.05)
    return client


def index_of(client: longbow.LongbowClient, name: str) -> dict:
    told = client._session.action_json(client._session.meta, "check_readiness", {"dataset": name})
    return told["indexes"][0]


def by_ticket(server: Server, name: str, **keys: object) -> tuple[list[list[int]], dict]:
    """The ids of all queries in one ticket, as plain pyarrow gets them, and what the reply says."""
    search = {"dataset": name, "vectors": QUERIES.tolist(), "k": K, **keys}
    ticket = flight.Ticket(json.dumps({"search": search}).encode())
    with flight.connect(server.uri) as wire:
        table: pa.Table = wire.do_get(ticket).read_all()
    ids = np.array(table["id"].to_pylist()).reshape(len(QUERIES), K)
    return ids.tolist(), json.loads(table.schema.metadata[b"longbow.query"])


def recall(found: list[list[int]]) -> float:
    hits = sum(len(truth.intersection(ids)) for truth, ids in zip(TRUTH, found, strict=True))
    return hits / (K * len(TRUTH))


def gauge(server: Server, name: str) -> float | None:
    with urllib.request.urlopen(f"http://{server.http}/metrics") as answer:
        text = answer.read().decode()
    line = rf'^longbow_search_recall\{{dataset="{name}",index="vector"\}} (\S+)$'
    value = re.search(line, text, re.MULTILINE)
    return None if value is None else float(value[1])


def test_a_target_in_a_ticket_is_reached(quick) -> None:
    client = insert(quick, "targets")
    before = 0
    for target in (0.6, 0.8, 0.95):
        found, info = by_ticket(quick, "targets", recall_target=target)
        assert recall(found) >= target - 0.02, info
        assert info["recall_target"] == pytest.approx(target)
        assert info["recall_expected"] >= target - 1e-6
        assert before < info["ef"]
        before = info["ef"]
    found, info = by_ticket(quick, "targets", recall_target=1.0)
    assert (recall(found), info["strategy"], "ef" in info) == (1.0, "exact", False)
    reply = client.search("targets", QUERIES[0], recall_target=0.9)
    told = longbow.query_info(reply).more
    assert told["recall_expected"] >= 0.9 - 1e-6 and told["ef"] >= K
    assert "recall_expected" in longbow.explain(reply)


def test_what_is_said_directly_goes_before_a_target(quick) -> None:
    insert(quick, "direct")
    _, info = by_ticket(quick, "direct", recall_target=0.99, ef=21)
    assert info["ef"] == 21 and "recall_target" not in info
    found, info = by_ticket(quick, "direct", recall_target=0.5, exact=True)
    assert (recall(found), info["strategy"]) == (1.0, "exact")


def test_a_target_of_the_dataset(quick) -> None:
    client = insert(quick, "whole", recall_target=0.7)
    _, info = by_ticket(quick, "whole")
    assert info["recall_target"] == pytest.approx(0.7)
    _, info = by_ticket(quick, "whole", recall_target=0.9)
    assert info["recall_target"] == pytest.approx(0.9)
    client.insert("whole", ROWS[:1])
    with pytest.raises(longbow.InvalidArgument, match="recall_target_changed"):
        client.insert("whole", ROWS[:1], recall_target=0.9)
    with pytest.raises(longbow.InvalidArgument, match="bad_recall_target"):
        client.insert("other", ROWS[:1], recall_target=90)


def test_the_gauge_tells_the_truth(quick) -> None:
    client = insert(quick, "measured")
    assert gauge(quick, "measured") is None
    truth = recall(by_ticket(quick, "measured", ef=25)[0])
    assert 0.3 < truth < 0.95
    deadline = time.monotonic() + 60
    while True:
        for _ in range(20):
            by_ticket(quick, "measured", ef=25)
        seen = gauge(quick, "measured")
        if seen is not None and abs(seen - truth) < 0.02:
            break
        assert time.monotonic() < deadline, f"the gauge says {seen}, the truth is {truth}"
    client.delete_dataset("measured")
    assert gauge(quick, "measured") is None
