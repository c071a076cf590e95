"""SQL by the client: the same over the network and in this process."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pytest

import longbow


def test_rows_are_selected_filtered_joined_and_grouped(client, books) -> None:
    found = client.sql(f"SELECT title FROM {books} WHERE year < 1950 ORDER BY year")
    assert found["title"].to_pylist() == ["Emma", "Ulysses"]
    grouped = client.sql(
        f"SELECT year > 1900 AS new, count(*) AS n FROM {books} GROUP BY 1 ORDER BY 1"
    )
    assert grouped.to_pylist() == [{"new": False, "n": 1}, {"new": True, "n": 3}]
    pairs = f"SELECT count(*) AS n FROM {books} a JOIN {books} b ON a.year > b.year"
    assert client.sql(pairs)["n"].to_pylist() == [6]


@pytest.mark.parametrize("vector", [[0.1, 0.2, 0.3], np.array([0.1, 0.2, 0.3], np.float32)])
def test_a_vector_is_a_parameter(client, books, vector) -> None:
    ordered = f"SELECT id, distance(vector, $1) AS d FROM {books} ORDER BY d LIMIT $2"
    searched = f"SELECT id, distance AS d FROM vector_search('{books}', $1, k => $2)"
    for statement in (ordered, searched):
        found = client.sql(statement, [vector, 2])
        assert found["id"].to_pylist() == ["b1", "b2"]
        assert found["d"].to_pylist() == pytest.approx([0.0, 0.1414], abs=1e-3)


def test_a_filter_goes_before_the_nearest(client, books) -> None:
    statement = f"SELECT title FROM {books} WHERE year > $2 ORDER BY distance(vector, $1) LIMIT 2"
    found = client.sql(statement, [[0.1, 0.2, 0.3], 1900])
    assert found["title"].to_pylist() == ["Dune", "Ulysses"]


def test_each_row_of_a_table_is_searched_for(client, books) -> None:
    lateral = f"FROM {books} q, LATERAL vector_search('{books}', q.vector, $1) n"
    found = client.sql(
        f"SELECT q.title AS title, n.title AS like {lateral} WHERE n.id <> q.id ORDER BY q.id", [2]
    )
    assert found.to_pylist() == [
        {"title": "Dune", "like": "Emma"},
        {"title": "Emma", "like": "Dune"},
        {"title": "Ulysses", "like": "Emma"},
        {"title": "Solaris", "like": "Ulysses"},
    ]
    counted = client.sql(f"SELECT count(*) AS n {lateral}", [3])
    assert counted["n"].to_pylist() == [12]
    with pytest.raises(longbow.Unimplemented, match="LEFT JOIN LATERAL"):
        client.sql(
            f"SELECT q.id FROM {books} q LEFT JOIN LATERAL "
            f"vector_search('{books}', q.vector, 1) n ON n.year > 1900"
        )


def test_rows_are_written(client, books) -> None:
    insert = f"INSERT INTO {books} (id, vector, title, year) VALUES ($1, $2, $3, $4)"
    assert client.sql(insert, ["b5", [0.5, 0.5, 0.5], "Momo", 1973])["count"].to_pylist() == [1]
    many = pa.table(
        {"1": ["b6", "b7"], "2": [[1.0, 0, 0], [0, 1.0, 0]], "3": ["x", "y"], "4": [1, 2]}
    )
    assert client.sql(insert, many)["count"].to_pylist() == [2]
    assert client.get(books, "b6")["title"] == "x"
    deleted = client.sql(f"DELETE FROM {books} WHERE year < $1", [1900])
    assert deleted["count"].to_pylist() == [3]
    assert client.sql(f"SELECT count(*) AS n FROM {books}")["n"].to_pylist() == [4]


def test_a_stream_ends_early(client, books) -> None:
    with client.sql_stream(
        f"SELECT a.id FROM {books} a, {books} b, {books} c, {books} d"
    ) as stream:
        assert next(stream).num_rows > 0
    running = "SELECT statement FROM longbow.queries"
    begun = time.monotonic()
    while client.sql(running).num_rows > 1:
        assert time.monotonic() < begun + 60, "the statement still runs"


@pytest.mark.parametrize(
    ("statement", "error", "code"),
    [
        ("SELEC 1", longbow.InvalidArgument, "bad_sql"),
        ("SELECT * FROM nothing", longbow.NotFound, "unknown_table"),
        ("SELECT nothing FROM {books}", longbow.InvalidArgument, "unknown_column"),
        ("SELECT year / 0 FROM {books}", longbow.InvalidArgument, "division_by_zero"),
        ("SELECT 1 WHERE $1 = 2", longbow.InvalidArgument, "bad_parameters"),
        ("CREATE TABLE t (id INT)", longbow.Unimplemented, "unimplemented"),
    ],
)
def test_what_is_wrong_is_said(client, books, statement, error, code) -> None:
    with pytest.raises(error) as raised:
        client.sql(statement.format(books=books))
    assert raised.value.code == code
    assert ";" in raised.value.message
