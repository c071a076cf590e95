"""ListFlights, GetFlightInfo, GetSchema as the contract says, with pyarrow alone."""

import json

import pyarrow as pa
import pyarrow.flight as flight
import pytest
from wire import refused, rows

PATH = flight.FlightDescriptor.for_path


@pytest.fixture
def ten(wire, dataset) -> str:
    wire.put(dataset, rows(10))
    return dataset


def listed(wire, criteria: bytes = b"") -> dict:
    return {info.descriptor.path[0].decode(): info for info in wire.meta.list_flights(criteria)}


def check(info: flight.FlightInfo, count: int) -> None:
    assert info.total_records == count
    assert info.total_bytes > 0
    assert info.schema.names == rows(1).schema.names
    assert [field.type for field in info.schema] == [field.type for field in rows(1).schema]
    assert len(info.endpoints) == 1


def test_every_dataset_is_listed(wire, ten) -> None:
    check(listed(wire)[ten], 10)


def test_a_dataset_by_its_path(wire, ten) -> None:
    info = wire.meta.get_flight_info(PATH(ten))
    check(info, 10)
    assert info.descriptor.path == [ten.encode()]
    wire.act("delete", {"dataset": ten, "id": 1})
    assert wire.meta.get_flight_info(PATH(ten)).total_records == 9


def test_an_endpoint_can_be_followed(wire, ten) -> None:
    (endpoint,) = wire.meta.get_flight_info(PATH(ten)).endpoints
    for location in endpoint.locations:
        with flight.connect(location) as client:
            assert client.do_get(endpoint.ticket).read_all().num_rows == 10
    assert wire.data.do_get(endpoint.ticket).read_all().num_rows == 10


@pytest.mark.parametrize("side", ["data", "meta"])
def test_the_schema_alone(wire, ten, side) -> None:
    schema = getattr(wire, side).get_schema(PATH(ten)).schema
    assert schema.names == rows(1).schema.names


def test_criteria_filter_by_name_and_rows(wire, ten) -> None:
    def by(**one: object) -> set:
        return set(listed(wire, json.dumps({"filters": [one]}).encode()))

    assert by(field="name", operator="=", value=ten) == {ten}
    assert ten in by(field="rows", operator=">=", value=10)
    assert ten not in by(field="rows", operator=">", value=10)


CRITERIA = [
    b"{",
    b'{"filters": [{"field": "nope", "operator": "=", "value": 1}]}',
    b'{"fliters": []}',
]


@pytest.mark.parametrize("criteria", CRITERIA)
def test_criteria_that_are_wrong_are_refused(wire, criteria) -> None:
    with pytest.raises(pa.ArrowInvalid):
        list(wire.meta.list_flights(criteria))


def test_what_is_unknown_is_not_found(wire) -> None:
    for call in (wire.meta.get_flight_info, wire.meta.get_schema, wire.data.get_schema):
        with refused(pa.ArrowKeyError, "dataset_not_found", "nowhere"):
            call(PATH("nowhere"))


def test_a_command_is_no_dataset(wire) -> None:
    with pytest.raises((pa.ArrowInvalid, pa.ArrowNotImplementedError)):
        wire.meta.get_flight_info(flight.FlightDescriptor.for_command(b"nowhere"))


def test_new_columns_show_in_the_schema(wire, ten) -> None:
    more = rows(1, 10).append_column("extra", pa.array([1.5]))
    wire.put(ten, more)
    assert wire.meta.get_schema(PATH(ten)).schema.names[-1] == "extra"
    assert wire.get(ten)["extra"].to_pylist() == [None] * 10 + [1.5]
