"""Flight SQL as a driver speaks it that knows nothing of Longbow: ADBC."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.flight as flight
import pytest
from adbc_driver_flightsql import dbapi
from server import binary

from longbow.sql import _field, _packed


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


def statement(text: str) -> bytes:
    return _packed("TicketStatementQuery", _field(1, text.encode()))


@pytest.mark.parametrize(
    ("ticket", "error", "code"),
    [
        (_packed("TicketStatementQuery", b"\xff\xff"), flight.FlightServerError, "bad_message"),
        (
            _packed("TicketStatementQuery", _field(1, b"\xff")),
            flight.FlightServerError,
            "bad_ticket",
        ),
        (_packed("NoSuchCommand", b""), flight.FlightServerError, "unimplemented"),
        (_packed("CommandGetXdbcTypeInfo", b""), flight.FlightServerError, "unimplemented"),
        (
            _packed("CommandPreparedStatementQuery", _field(1, b"x" * 8)),
            KeyError,
            "statement_not_found",
        ),
        (_packed("CommandGetPrimaryKeys", _field(3, b"nothing")), KeyError, "dataset_not_found"),
    ],
)
def test_a_command_that_is_wrong_says_how(wire, ticket, error, code) -> None:
    with pytest.raises((error, pa.ArrowException), match=code):
        wire.meta.do_get(flight.Ticket(ticket)).read_all()
    with pytest.raises((error, pa.ArrowException)):
        wire.meta.get_flight_info(flight.FlightDescriptor.for_command(ticket))


def test_each_server_sends_to_the_other(wire) -> None:
    with pytest.raises(pa.ArrowException, match="wrong_server"):
        wire.data.do_get(flight.Ticket(statement("SELECT 1"))).read_all()
    descriptor = flight.FlightDescriptor.for_path("rows")
    with pytest.raises(pa.ArrowException, match="wrong_server"):
        writer, reader = wire.meta.do_put(descriptor, pa.schema([("id", pa.int64())]))
        reader.read()
        writer.close()


def test_a_query_is_not_run_by_asking_for_its_columns(wire, remote, shelf) -> None:
    command = _packed("CommandStatementQuery", _field(1, f"DELETE FROM {shelf}".encode()))
    info = wire.meta.get_flight_info(flight.FlightDescriptor.for_command(command))
    assert info.schema.names == ["count"]
    assert remote.get_info(shelf).rows == 100
    table = wire.meta.do_get(info.endpoints[0].ticket).read_all()
    assert table.to_pylist() == [{"count": 100}]


def ask(server, text: str) -> subprocess.CompletedProcess[str]:
    command = [str(binary()), "sql", text, "--addr", server.meta]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_the_command_line_prints_a_table(server, shelf) -> None:
    told = ask(server, f"SELECT id, title FROM {shelf} ORDER BY id LIMIT 1")
    assert (told.returncode, told.stderr) == (0, "")
    assert "| id | title  |" in told.stdout
    assert "| 0  | book 0 |" in told.stdout
    assert "| id |" in ask(server, f"SELECT id FROM {shelf} WHERE id < 0").stdout
    told = ask(server, "SELEC 1")
    assert (told.returncode, told.stdout) == (1, "")
    assert told.stderr.startswith("longbow: bad_sql: ")
