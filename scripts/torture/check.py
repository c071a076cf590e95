"""What a restarted server says, beside what it must say."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.flight as flight

from .model import State
from .rows import GROUPS, Kind, group

K = 10


class Contents:
    """A dataset as it was downloaded."""

    def __init__(self, client: flight.FlightClient, kind: Kind) -> None:
        self.client, self.kind = client, kind
        self.problems: list[str] = []
        try:
            table = get(client, kind.name)
        except pa.ArrowException as error:
            if "dataset_not_found" not in str(error):
                raise
            self.rows: State = {}
            return
        keys = [kind.key(name) for name in table["id"].to_pylist()]
        versions = table["version"].to_pylist()
        self.rows = dict(zip(keys, versions))
        if len(self.rows) != len(keys):
            self.problems.append(f"{kind.name}: {len(keys) - len(self.rows)} ids are there twice")
        self._compare(table, np.array(keys, np.int64), np.array(versions, np.int64))

    def _compare(self, table: pa.Table, keys: np.ndarray, versions: np.ndarray) -> None:
        """Every value of every row follows from its key and version."""
        late = "late" in table.column_names
        expected = self.kind.columns(keys, versions, late)
        if table.column_names != expected.column_names:
            self.problems.append(f"{self.kind.name}: columns {table.column_names}")
            return
        for name in expected.column_names:
            if name != "vector" and not table[name].equals(expected[name]):
                self.problems.append(f"{self.kind.name}.{name}: {differing(table, expected, name)} values")
        found = matrix(table["vector"], self.kind.dim)
        wrong = (found != self.kind.vectors(versions)).any(axis=1).sum() if len(keys) else 0
        if wrong:
            self.problems.append(f"{self.kind.name}.vector: {wrong} wrong")

    def owned(self, first: int, end: int) -> State:
        """The rows with keys in a range."""
        return {key: version for key, version in self.rows.items() if first <= key < end}

    def searches(self, rng: random.Random, times: int) -> tuple[int, int]:
        """Exact searches give the truth, others no less rows; how many of the nearest those found, of how many."""
        keys = np.array(list(self.rows), np.int64)
        versions = np.array(list(self.rows.values()), np.int64)
        vectors = self.kind.vectors(versions).astype(np.float64)
        groups = np.array([group(version) for version in versions.tolist()])
        found = wanted = 0
        for turn in range(times if len(keys) else 0):
            query = np.array([rng.randrange(-8, 8) for _ in range(self.kind.dim)], np.float64)
            distances = dict(zip(keys.tolist(), distance(self.kind, query, vectors).tolist()))
            only = rng.randrange(GROUPS) if turn % 3 == 2 else None
            passing = keys if only is None else keys[groups == only]
            nearest = sorted(distances[key] for key in passing.tolist())[:K]
            self._search(query, only, True, distances, nearest)
            found += self._search(query, only, False, distances, nearest)
            wanted += len(nearest)
        return found, wanted

    def _search(
        self, query: np.ndarray, only: int | None, exact: bool, distances: dict[int, float], nearest: list[float]
    ) -> int:
        """One search; how many of the rows it gave are among the nearest."""
        search: dict[str, Any] = {"dataset": self.kind.name, "vector": query.tolist(), "k": K, "exact": exact}
        if only is not None:
            search["filters"] = [{"field": "group", "operator": "==", "value": only}]
        table = get(self.client, json.dumps({"search": search}))
        given = list(zip(table["id"].to_pylist(), table["distance"].to_pylist()))
        keys = [self.kind.key(name) for name, _ in given]
        what = f"{self.kind.name}: search {search}"
        if len(set(keys)) != len(keys) or any(key not in distances for key in keys):
            self.problems.append(f"{what} gives rows twice or rows that are not there")
            return 0
        if any(abs(distances[key] - said) > 1e-3 for key, (_, said) in zip(keys, given)):
            self.problems.append(f"{what} gives wrong distances")
        if len(keys) != len(nearest):
            self.problems.append(f"{what} gives {len(keys)} of {len(nearest)} rows")
        if exact and any(abs(said - true) > 1e-3 for (_, said), true in zip(given, nearest)):
            self.problems.append(f"{what} does not give the nearest rows")
        last = nearest[-1] + 1e-3 if nearest else 0.0
        return sum(said <= last for _, said in given)


def get(client: flight.FlightClient, ticket: str) -> pa.Table:
    """The table that a ticket stands for."""
    return client.do_get(flight.Ticket(ticket.encode())).read_all()


def differing(table: pa.Table, expected: pa.Table, name: str) -> int:
    """How many values of a column differ."""
    same = pc.equal(table[name], expected[name])
    nulls = pc.and_(pc.is_null(table[name]), pc.is_null(expected[name]))
    return len(table) - pc.sum(pc.or_(nulls, pc.fill_null(same, False))).as_py()


def matrix(column: pa.ChunkedArray, dim: int) -> np.ndarray:
    """A vector column as numpy has it."""
    parts = [chunk.flatten().to_numpy().reshape(-1, dim) for chunk in column.chunks]
    return np.concatenate(parts) if parts else np.zeros((0, dim))


def distance(kind: Kind, query: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Distances as the server says them."""
    if kind.metric == "euclidean":
        return np.sqrt(((vectors - query) ** 2).sum(axis=1))
    norms = np.linalg.norm(vectors, axis=1) * np.linalg.norm(query)
    with np.errstate(invalid="ignore", divide="ignore"):
        cosines = vectors @ query / norms
    return 1.0 - np.where(norms == 0, 0.0, cosines)
