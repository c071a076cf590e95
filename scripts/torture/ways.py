"""Every way to a row must lead to the same rows: words, vectors, SQL, the catalog, and the download."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight

from .model import State
from .rows import Kind, own_word

# Words of one query; a server takes 512.
WORDS = 300
# Vectors of one search.
VECTORS = 256
# Nearest rows asked for: a row is the nearest to its own vector, unless others have the same.
NEAREST = 5
NEAR = 1e-3


class Ways:
    """A dataset whose rows are known, asked for in other ways than by downloading it."""

    def __init__(self, data: flight.FlightClient, meta: flight.FlightClient, kind: Kind, rows: State) -> None:
        self.data, self.meta, self.kind, self.rows = data, meta, kind, rows
        self.problems: list[str] = []

    def check(self, gone: State) -> int:
        """All rows are found, and none of those that are gone: keys and versions; how many were looked for."""
        if not self.rows:
            return 0
        self._by_words(self.rows, gone)
        self._by_vector(self.rows, there=True)
        self._by_vector(gone, there=False)
        self._counted()
        return len(self.rows) + len(gone)

    def _by_words(self, rows: State, gone: State) -> None:
        """The words that only one version of a row has find that row, and those of gone versions nothing."""
        for part in _parts(rows, WORDS):
            self._same("words", self._keys_of(part), set(part))
        for part in _parts(gone, WORDS):
            self._same("words of gone rows", self._keys_of(part), set())

    def _keys_of(self, rows: State) -> set[int]:
        """What the words of these rows find."""
        words = " ".join(own_word(key, version) for key, version in rows.items())
        search = {"dataset": self.kind.name, "text_query": words, "text_columns": ["text"], "k": 2 * len(rows)}
        table = get(self.data, json.dumps({"search": search}).encode())
        return {self.kind.key(name) for name in table["id"].to_pylist()}

    def _by_vector(self, rows: State, there: bool) -> None:
        """The vector of a row finds it at no distance; that of a gone version finds no row of its key there."""
        for part in _parts(rows, VECTORS):
            keys = list(part)
            vectors = self.kind.vectors(np.array(list(part.values()), np.int64)).astype(float)
            search = {"dataset": self.kind.name, "vectors": vectors.tolist(), "k": NEAREST, "exact": True}
            table = get(self.data, json.dumps({"search": search}).encode())
            columns = (table[name].to_pylist() for name in ("query_index", "id", "distance"))
            near = {(at, self.kind.key(name)) for at, name, distance in zip(*columns) if distance <= NEAR}
            found = {key for at, key in enumerate(keys) if (at, key) in near}
            if there:
                self._same("vectors", found, set(keys))
            else:
                # Another version of the row may be at the same place.
                wrong = {key for key in found if not self._same_place(key, part[key])}
                self._same("vectors of gone rows", wrong, set())

    def _same_place(self, key: int, gone: int) -> bool:
        """Whether the version of a row that is there has the vector of one that is gone."""
        if key not in self.rows:
            return False
        one, other = self.kind.vectors(np.array([self.rows[key], gone], np.int64))
        return bool((one == other).all())

    def _counted(self) -> None:
        """The catalog and SQL count the same rows, and of the same versions."""
        info = self.meta.get_flight_info(flight.FlightDescriptor.for_path(self.kind.name))
        told = sql(self.meta, f'SELECT count(*), count(DISTINCT id), sum(version) FROM "{self.kind.name}"')
        counts = [info.total_records, *(column[0].as_py() for column in told.columns)]
        expected = [len(self.rows)] * 3 + [sum(self.rows.values())]
        if counts != expected:
            self.problems.append(f"{self.kind.name}: counted {counts}, expected {expected}")

    def _same(self, what: str, found: set[int], expected: set[int]) -> None:
        if found != expected:
            missing, more = sorted(expected - found)[:5], sorted(found - expected)[:5]
            self.problems.append(f"{self.kind.name}: {what} miss {missing} and find {more}")


def _parts(rows: State, size: int) -> Iterator[State]:
    """Rows, a few at a time."""
    items = list(rows.items())
    for at in range(0, len(items), size):
        yield dict(items[at : at + size])


def get(client: flight.FlightClient, ticket: bytes) -> pa.Table:
    """The table that a ticket stands for."""
    return client.do_get(flight.Ticket(ticket)).read_all()


def sql(client: flight.FlightClient, statement: str) -> pa.Table:
    """The rows of a statement, by Flight SQL: a TicketStatementQuery, packed in protobuf's Any."""
    kind = b"type.googleapis.com/arrow.flight.protocol.sql.TicketStatementQuery"
    return get(client, _field(1, kind) + _field(2, _field(1, statement.encode())))


def _field(number: int, value: bytes) -> bytes:
    """A field of bytes, shorter than 16 KiB."""
    low, high = len(value) & 0x7F, len(value) >> 7
    return bytes([number << 3 | 2, *([low | 0x80, high] if high else [low])]) + value
