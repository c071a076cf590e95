"""DoGet tickets as the contract says, with pyarrow alone."""

import json

import pyarrow as pa
import pyarrow.flight as flight
import pytest
from wire import refused, rows

BATCH = rows(50)


@pytest.fixture(scope="module")
def fifty(wire) -> str:
    wire.put("fifty", rows(25), rows(25, 25))
    return "fifty"


WHOLE = ["fifty", '{"name": "fifty"}', '{"dataset": "fifty"}', ' {"name":"fifty"}']


@pytest.mark.parametrize("side", ["data", "meta"])
@pytest.mark.parametrize("ticket", WHOLE)
def test_a_whole_dataset_from_both_servers(wire, fifty, ticket, side) -> None:
    table = wire.get(ticket, side)
    assert table.schema.names == BATCH.schema.names
    assert [f.type for f in table.schema] == [f.type for f in BATCH.schema]
    assert table.to_pylist() == BATCH.to_pylist()


def test_an_empty_dataset_has_its_schema(wire, dataset) -> None:
    wire.put(dataset, rows(1))
    wire.act("delete", {"dataset": dataset, "id": 0})
    table = wire.get(dataset)
    assert (table.num_rows, table.schema.names) == (0, BATCH.schema.names)


FILTERS = [
    ({"field": "id", "operator": "=", "value": 7}, [7]),
    ({"field": "id", "op": "==", "value": "7"}, [7]),
    ({"field": "name", "operator": "EQ", "value": "name-7"}, [7]),
    ({"field": "id", "operator": ">=", "value": 48}, [48, 49]),
    ({"field": "id", "operator": "lt", "value": "2"}, [0, 1]),
    ({"field": "year", "operator": "=", "value": 2003}, [3, 13, 23, 33, 43]),
    ({"field": "id", "operator": ">", "value": 100}, []),
]


@pytest.mark.parametrize("one, ids", FILTERS, ids=str)
def test_filters(wire, fifty, one, ids) -> None:
    table = wire.get({"name": fifty, "filters": [one]})
    assert table["id"].to_pylist() == ids
    assert table.schema.names == BATCH.schema.names


def test_a_list_of_filters_is_a_conjunction(wire, fifty) -> None:
    filters = [
        {"field": "year", "operator": "=", "value": 2003},
        {"field": "id", "operator": ">", "value": 20},
    ]
    assert wire.get({"name": fifty, "filters": filters})["id"].to_pylist() == [23, 33, 43]


def test_deleted_rows_never_appear(wire, dataset) -> None:
    wire.put(dataset, rows(10))
    wire.act("delete", {"dataset": dataset, "ids": [3, 4]})
    left = [0, 1, 2, 5, 6, 7, 8, 9]
    assert wire.get(dataset)["id"].to_pylist() == left
    low = {"field": "id", "operator": "<", "value": 5}
    assert wire.get({"name": dataset, "filters": [low]})["id"].to_pylist() == [0, 1, 2]
    assert wire.get({"name": dataset, "limit": 4})["id"].to_pylist() == left[:4]
    found = wire.search(dataset, vector=[3.0, 1.0], k=10, filters=[low])
    assert sorted(found["id"].to_pylist()) == [0, 1, 2]


def test_a_search_replies_best_first_with_its_own_columns(wire, fifty) -> None:
    table = wire.search(fifty, vector=[7.0, 1.0], k=3)
    by_base64 = wire.search(fifty, vector="AADgQAAAgD8=", k=3)
    assert by_base64.to_pydict() == table.to_pydict()
    assert table.schema.names == ["id", "score", "distance"]
    assert [f.type for f in table.schema] == [pa.int64(), pa.float32(), pa.float32()]
    assert table["id"].to_pylist()[0] == 7
    assert table["distance"].to_pylist() == [0.0, 1.0, 1.0]
    assert table["score"].to_pylist() == [1.0, 0.5, 0.5]


def test_a_search_from_the_meta_server_is_the_same(wire, fifty) -> None:
    ticket = {"search": {"dataset": fifty, "vector": [7.0, 1.0], "k": 1}}
    assert wire.get(ticket, "meta")["id"].to_pylist() == [7]


@pytest.mark.parametrize("count", [1, 3])
def test_vectors_bring_a_query_index_first(wire, fifty, count) -> None:
    vectors = [[7.0, 1.0], [9.0, 1.0], [11.0, 1.0]][:count]
    table = wire.search(fifty, vectors=vectors, k=2)
    assert table.schema.names == ["query_index", "id", "score", "distance"]
    assert table.schema.field(0).type == pa.int32()
    assert table["query_index"].to_pylist() == [n for n in range(count) for _ in range(2)]


def search_ticket(dataset: str, vectors: list) -> flight.Ticket:
    search = {"dataset": dataset, "vectors": vectors, "k": 2}
    return flight.Ticket(json.dumps({"search": search}).encode())


def test_many_vectors_are_answered_message_by_message(wire, fifty) -> None:
    vectors = [[float(n % 50), 1.0] for n in range(1200)]
    chunks = list(wire.data.do_get(search_ticket(fifty, vectors)))
    far = [json.loads(chunk.app_metadata.to_pybytes()) for chunk in chunks]
    assert [one["queries_done"] for one in far] == [512, 1024, 1200]
    assert {one["queries_asked"] for one in far} == {1200}
    assert [chunk.data.num_rows for chunk in chunks] == [1024, 1024, 352]
    table = pa.Table.from_batches([chunk.data for chunk in chunks])
    assert table.schema.names == ["query_index", "id", "score", "distance"]
    assert table["query_index"].to_pylist() == [n for n in range(1200) for _ in range(2)]
    assert table["id"].to_pylist()[::2] == [n % 50 for n in range(1200)]


def test_a_wrong_vector_among_many_is_refused_before_the_first_is_answered(wire, fifty) -> None:
    vectors = [[1.0, 1.0]] * 1199 + [[1.0]]
    with refused(pa.ArrowInvalid, "dimension_mismatch"):
        next(iter(wire.data.do_get(search_ticket(fifty, vectors))))


def test_columns_and_the_vector_come_last(wire, fifty) -> None:
    table = wire.search(fifty, vector=[7.0, 1.0], k=1, columns=["year"], include_vectors=True)
    assert table.schema.names == ["id", "score", "distance", "year", "vector"]
    assert table.schema.field("vector").type == BATCH.schema.field("vector").type
    assert table["vector"].to_pylist() == [[7.0, 1.0]]


def test_an_empty_reply_has_the_schema_and_says_why(wire, fifty) -> None:
    none = [{"field": "id", "operator": ">", "value": 99}]
    table = wire.search(fifty, vector=[7.0, 1.0], k=3, filters=none, columns=["name"])
    assert (table.num_rows, table.schema.names) == (0, ["id", "score", "distance", "name"])
    told = json.loads(table.schema.metadata[b"longbow.query"])
    assert (told["returned"], told["asked"]) == (0, 3)
    assert told["short_because"]


def test_every_reply_tells_how_it_was_found(wire, fifty) -> None:
    told = json.loads(wire.search(fifty, vector=[7.0, 1.0], k=3).schema.metadata[b"longbow.query"])
    for key in ("returned", "asked", "rows_scanned", "distance_computations", "elapsed_us"):
        assert isinstance(told[key], int)
    assert isinstance(told["strategy"], str)
    assert "short_because" not in told


INVALID = [
    ('{"name": "fifty"', ["JSON"]),
    ("{}", ["name"]),
    ('{"name": "fifty", "limt": 5}', ["limt", "limit"]),
    ('{"name": "fifty", "limit": "five"}', ["five"]),
    ('{"name": "fifty", "limit": -1}', ["limit", "-1"]),
    ('{"name": "fifty", "columns": ["nope"]}', ["column_not_found", "nope"]),
    ('{"name": "fifty", "filters": [{"field": "nope", "operator": "=", "value": 1}]}', ["nope"]),
    ('{"name": "fifty", "filters": [{"field": "id", "operator": "~", "value": 1}]}', ["~"]),
    ('{"name": "fifty", "filters": [{"field": "id", "operator": "=", "value": "x"}]}', ["x"]),
    ('{"name": "fifty", "filters": [{"feld": "id"}]}', ["feld", "field"]),
    ('{"search": {"dataset": "fifty", "vector": [1.0], "k": 1}}', ["expected 2, got 1"]),
    ('{"search": {"dataset": "fifty", "vector": [1.0, 2.0], "k": 0}}', ["bad_k", "0"]),
    ('{"search": {"dataset": "fifty", "vector": [1.0, 2.0], "kk": 1}}', ["kk", "'k'"]),
    ('{"search": {"dataset": "fifty", "k": 1}}', ["vector"]),
    ('{"search": {"vector": [1.0, 2.0]}}', ["dataset"]),
    ('{"search": {"dataset": "fifty", "vector": "x"}}', ["vector|x"]),
    ('{"search": {"dataset": "fifty", "vector": "AACAPwA="}}', ["bad_value", "5 bytes"]),
    ('{"search": {"dataset": "fifty", "vector": "AACAPw=="}}', ["expected 2, got 1"]),
    ('{"search": {"dataset": "fifty", "vector": "AADAfwAAgD8="}}', ["not_finite", "nan|NaN"]),
    ('{"search": {"dataset": "fifty", "vector": [1.0, 2.0], "ef": 0}}', ["ef", "0"]),
    ("\xff\xfe", [""]),
]


@pytest.mark.parametrize("ticket, words", INVALID)
def test_tickets_that_are_wrong_say_how(wire, fifty, ticket, words) -> None:
    with refused(pa.ArrowInvalid if ticket[0] in "{ " else pa.ArrowException, *words):
        wire.get(ticket)


MISSING = ["nowhere", '{"name": "nowhere"}', '{"search": {"dataset": "nowhere", "vector": [1.0]}}']


@pytest.mark.parametrize("ticket", MISSING)
def test_unknown_datasets_are_not_found(wire, ticket) -> None:
    with refused(pa.ArrowKeyError, "dataset_not_found", "'nowhere'"):
        wire.get(ticket)


UNIMPLEMENTED = [
    {"search": {"dataset": "fifty", "vector": [1.0, 2.0], "vector_format": "int8"}},
    {"search": {"dataset": "fifty", "vector": [1.0, 2.0], "graph_alpha": 0.5}},
]


@pytest.mark.parametrize("ticket", UNIMPLEMENTED, ids=json.dumps)
def test_what_is_not_offered_is_said_to_be_unimplemented(wire, fifty, ticket) -> None:
    with refused(pa.ArrowNotImplementedError, "unimplemented"):
        wire.get(ticket)
