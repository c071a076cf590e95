"""Flight SQL as a driver speaks it that knows nothing of Longbow: ADBC."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from adbc_driver_flightsql import dbapi


@pytest.fixture
def connection(server) -> Iterator[dbapi.Connection]:
    with dbapi.connect(
        server.meta_uri.replace("grpc://", "grpc+tcp://"), autocommit=True
    ) as opened:
        yield opened


@pytest.fixture
def cursor(connection) -> Iterator[dbapi.Cursor]:
    with connection.cursor() as opened:
        yield opened


@pytest.fixture
def shelf(remote, dataset) -> str:
    rows = [{"id": n, "vector": [float(n), 0.0], "title": f"book {n}"} for n in range(100)]
    remote.insert(dataset, rows)
    return dataset


def test_a_query_is_read_by_arrow_and_what_reads_it(cursor, shelf) -> None:
    cursor.execute(f"SELECT id, title FROM {shelf} ORDER BY id LIMIT 3")
    assert cursor.fetchall() == [(0, "book 0"), (1, "book 1"), (2, "book 2")]
    cursor.execute(f"SELECT id, vector FROM {shelf} ORDER BY id")
    table = cursor.fetch_arrow_table()
    assert table.num_rows == 100
    assert table["vector"][7].as_py() == [7.0, 0.0]
    cursor.execute(f"SELECT id FROM {shelf}")
    assert len(cursor.fetch_df()) == 100
    cursor.execute(f"SELECT id FROM {shelf}")
    assert cursor.fetch_polars().height == 100


def test_a_prepared_vector_finds_its_neighbours(cursor, shelf) -> None:
    vector = pa.array([[7.2, 0.0]], pa.list_(pa.float32(), 2))
    batch = pa.record_batch({"1": vector, "2": pa.array([3])})
    cursor.execute(f"SELECT id, distance(vector, $1) AS d FROM {shelf} ORDER BY d LIMIT $2", batch)
    assert [row[0] for row in cursor.fetchall()] == [7, 8, 6]
    cursor.execute(f"SELECT title FROM {shelf} WHERE id = ?", (42,))
    assert cursor.fetchall() == [("book 42",)]


def test_rows_are_ingested(cursor, remote, dataset) -> None:
    vectors = pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2))
    rows = pa.table({"id": [1, 2], "vector": vectors, "title": ["a", "b"]})
    assert cursor.adbc_ingest(dataset, rows, mode="create") == 2
    assert cursor.adbc_ingest(dataset, rows.slice(1), mode="append") == 1
    assert remote.get_info(dataset).rows == 2
    with pytest.raises(dbapi.Error, match="dataset_exists"):
        cursor.adbc_ingest(dataset, rows, mode="create")
    assert cursor.adbc_ingest(dataset, rows.slice(0, 1), mode="replace") == 1
    assert remote.get_info(dataset).rows == 1
    with pytest.raises(dbapi.Error, match="dataset_not_found"):
        cursor.adbc_ingest("no_such_dataset", rows, mode="append")


def test_rows_are_written_and_deleted(cursor, remote, shelf) -> None:
    cursor.execute(f"DELETE FROM {shelf} WHERE id >= 90")
    assert cursor.fetchall() == [(10,)]
    batch = pa.record_batch({"1": pa.array([200, 201]), "2": pa.array([[1.0, 1.0], [2.0, 2.0]])})
    cursor.executemany(f"INSERT INTO {shelf} (id, vector) VALUES ($1, $2)", batch)
    assert remote.get_info(shelf).rows == 92


def test_the_catalog_tells_what_there_is(connection, shelf) -> None:
    about = connection.adbc_get_info()
    assert about["vendor_name"] == "Longbow"
    assert "TABLE" in connection.adbc_get_table_types()
    objects = (
        connection.adbc_get_objects(depth="all", table_name_filter=shelf).read_all().to_pylist()
    )
    [catalog] = [one for one in objects if one["catalog_name"] == "longbow"]
    tables = [
        (
            schema["db_schema_name"],
            table["table_name"],
            [c["column_name"] for c in table["table_columns"]],
        )
        for schema in catalog["catalog_db_schemas"]
        for table in schema["db_schema_tables"]
    ]
    assert tables == [("public", shelf, ["id", "vector", "title"])]
    schema = connection.adbc_get_table_schema(shelf)
    assert schema.names == ["id", "vector", "title"]


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("SELEC 1", "bad_sql"),
        ("SELECT * FROM nothing", "unknown_table"),
        ("SELECT 1 / 0", "division_by_zero"),
    ],
)
def test_an_error_has_its_code(cursor, statement, code) -> None:
    with pytest.raises(dbapi.Error, match=code):
        cursor.execute(statement)
        cursor.fetchall()
