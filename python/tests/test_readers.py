"""What SQL answers, received over ADBC by what people compute with: pandas, polars and DuckDB."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from adbc_driver_flightsql import dbapi

TIMES = [dt.datetime(2024, 5, 17, 12, 30), None, dt.datetime(1969, 12, 31, 23, 59, 59, 5)]
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "vector": pa.array([[0.0, 0.0], [1.0, 0.0], [0.0, 4.0]], pa.list_(pa.float32(), 2)),
        "title": ["Dune", None, ""],
        "price": pa.array([9.5, None, -0.25], pa.float64()),
        "sold": [True, None, False],
        "at": pa.array(TIMES, pa.timestamp("us")),
        "day": pa.array([dt.date(2024, 5, 17), None, dt.date(1970, 1, 1)], pa.date32()),
        "tags": pa.array([["a", "b"], None, []], pa.list_(pa.string())),
    }
)
#: Each row with its nearest other one, by a search for each.
NEIGHBOURS = """
    SELECT q.id AS id, n.id AS neighbour, n.distance AS distance
    FROM {table} q, LATERAL vector_search('{table}', q.vector, 2) n
    WHERE n.id <> q.id ORDER BY q.id
"""
FOUND = [(1, 2, 1.0), (2, 1, 1.0), (3, 1, 4.0)]


@pytest.fixture
def connection(server) -> Iterator[dbapi.Connection]:
    uri = server.meta_uri.replace("grpc://", "grpc+tcp://")
    with dbapi.connect(uri, autocommit=True) as opened:
        yield opened


@pytest.fixture
def table(remote, dataset) -> str:
    remote.insert(dataset, ROWS)
    return dataset


def test_pandas_reads_an_answer(connection, table) -> None:
    frame = pd.read_sql(f"SELECT * FROM {table} ORDER BY id", connection)
    assert list(frame.columns) == ROWS.column_names
    assert frame["title"].tolist()[::2] == ["Dune", ""] and pd.isna(frame["title"][1])
    assert frame["price"].tolist()[::2] == [9.5, -0.25] and pd.isna(frame["price"][1])
    assert frame["at"].dt.to_pydatetime().tolist()[0] == TIMES[0] and pd.isna(frame["at"][1])
    assert [list(vector) for vector in frame["vector"]] == ROWS["vector"].to_pylist()
    typed = pd.read_sql(f"SELECT * FROM {table} ORDER BY id", connection, dtype_backend="pyarrow")
    assert pa.Table.from_pandas(typed).to_pylist() == ROWS.to_pylist()
    found = pd.read_sql(NEIGHBOURS.format(table=table), connection)
    assert list(found.itertuples(index=False, name=None)) == FOUND


def test_polars_reads_an_answer(connection, table) -> None:
    frame = pl.read_database(f"SELECT * FROM {table} ORDER BY id", connection)
    assert frame.schema["vector"] == pl.Array(pl.Float32, 2)
    assert frame.schema["at"] == pl.Datetime("us")
    assert frame.to_dicts() == ROWS.to_pylist()
    found = pl.read_database(NEIGHBOURS.format(table=table), connection)
    assert found.rows() == FOUND
    batches = pl.read_database(
        f"SELECT id FROM {table}", connection, iter_batches=True, batch_size=2
    )
    assert sum(batch.height for batch in batches) == 3


def test_duckdb_reads_and_joins_an_answer(connection, table) -> None:
    with connection.cursor() as cursor, duckdb.connect() as other:
        cursor.execute(f"SELECT * FROM {table} ORDER BY id")
        # Read as it comes.
        other.register("answer", cursor.fetch_record_batch())
        told = other.sql("SELECT *, array_distance(vector, [0, 0]::FLOAT[2]) AS d FROM answer")
        assert dict(zip(told.columns, map(str, told.types)))["vector"] == "FLOAT[2]"
        rows = told.to_arrow_table()
        assert rows.drop_columns(["d"]).to_pylist() == ROWS.to_pylist()
        assert rows["d"].to_pylist() == [0.0, 1.0, 4.0]
        other.sql("CREATE TABLE names AS SELECT * FROM (VALUES (1, 'one'), (2, 'two')) t(id, name)")
        cursor.execute(NEIGHBOURS.format(table=table))
        other.register("answer", cursor.fetch_record_batch())
        joined = "SELECT a.id, name FROM answer a JOIN names n ON n.id = neighbour ORDER BY a.id"
        assert other.sql(joined).fetchall() == [(1, "two"), (2, "one"), (3, "one")]


def test_an_answer_without_rows_has_its_columns(connection, table) -> None:
    nothing = f"SELECT id, vector, title FROM {table} WHERE id > 9"
    assert list(pd.read_sql(nothing, connection).columns) == ["id", "vector", "title"]
    frame = pl.read_database(nothing, connection)
    assert (frame.height, frame.schema["vector"]) == (0, pl.Array(pl.Float32, 2))
    with connection.cursor() as cursor, duckdb.connect() as other:
        cursor.execute(nothing)
        answer = cursor.fetch_record_batch()
        assert other.sql("SELECT * FROM answer").fetchall() == []
        assert answer.schema.names == ["id", "vector", "title"]
