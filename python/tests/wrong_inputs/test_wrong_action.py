"""Actions that are wrong: unknown, with a wrong body, about what does not exist."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.flight as flight
from wire import Wire
from wrong import COMMAND, GOOD, NOT_FOUND, PATH, UNIMPLEMENTED, Target, Wrong, each, raw_act

FAILED = "precondition failed"


def act(
    what: str,
    action: str,
    body: Any,
    code: str,
    *words: str,
    status: str = "invalid argument",
    side: str = "data",
) -> Wrong:
    """An action with a JSON body."""
    return Wrong(what, lambda wire: wire.act(action, body, side), code, words, status)


def delete(what: str, code: str, *words: str, status: str = "invalid argument", **keys: Any):
    body = {"dataset": GOOD, **keys}
    return act(what, "delete", body, code, *words, status=status)


DELETES = [
    delete("nothing named", "bad_delete", "'id'", "'ids'", "'filters'"),
    delete("no ids", "bad_delete", "'ids'", ids=[]),
    delete("no filter", "bad_delete", "'filters' (not empty)", filters=[]),
    delete("two ways", "bad_delete", "one of", id=1, ids=[2]),
    delete("ids and filters", "bad_delete", "one of", ids=[2], filters=[]),
    delete(
        "an unknown id", "id_not_found", "id 99", "nothing was changed", status=NOT_FOUND, id=99
    ),
    delete("one unknown of many", "id_not_found", "77", status=NOT_FOUND, ids=[1, 2, 77, 3]),
    delete("an id twice and one unknown", "id_not_found", "77", status=NOT_FOUND, ids=[1, 1, 77]),
    delete(
        "a string for an integer",
        "id_not_found",
        "'1'",
        "whose ids are integers",
        status=NOT_FOUND,
        id="1",
    ),
    delete("an id with a fraction", "bad_value", "1.5", "integer or a text", id=1.5),
    delete("an id that is null", "bad_delete", "'id'", id=None),
    delete("an id that is a list", "bad_value", "correct it", id=[1]),
    delete("ids that are no list", "bad_value", "correct it", ids=1),
    delete("an id beyond 64 bits", "bad_value", "correct it", id=1 << 70),
    delete("an unknown key", "unknown_key", "'idd'", "did you mean 'id'?", idd=1),
    delete("an unknown dataset", "dataset_not_found", "'x'", status=NOT_FOUND, dataset="x", id=1),
    delete("a wrong predicate", "bad_sql", "not SQL", where="id ="),
    act("no dataset", "delete", {"id": 1}, "bad_value", "dataset"),
    act("no dataset to drop", "delete-dataset", {}, "missing_key", "'dataset'"),
    act("an unknown key to drop", "delete-dataset", {"datset": "x"}, "unknown_key", "'datset'"),
    act(
        "to drop what is not there",
        "delete-dataset",
        {"dataset": "x"},
        "dataset_not_found",
        "'x'",
        status=NOT_FOUND,
    ),
]


def by_id(what: str, code: str, *words: str, status: str = "invalid argument", **keys: Any):
    body = {"dataset": GOOD, "id": 1, "k": 1, **keys}
    body = {key: value for key, value in body.items() if value is not None}
    return act(what, "VectorSearchByID", body, code, *words, status=status)


BY_ID = [
    by_id("an unknown id", "id_not_found", "id 99", "'good'", status=NOT_FOUND, id=99),
    by_id("a string for an integer", "id_not_found", "'1'", status=NOT_FOUND, id="1"),
    by_id("an unknown dataset", "dataset_not_found", "'x'", status=NOT_FOUND, dataset="x"),
    by_id("no id", "bad_value", "id", "correct it", id=None),
    by_id("k = 0", "bad_k", "k is 0", "1 to 16384", k=0),
    by_id("k below zero", "bad_k", "k is -1", "1 to 16384", k=-1),
    by_id("k above the limit", "bad_k", "k is 20000", "1 to 16384", k=20_000),
    by_id("an unknown key", "unknown_key", "'kk'", "did you mean 'k'?", kk=1),
]


def meta(what: str, action: str, body: Any, code: str, *words: str, status: str = NOT_FOUND):
    return act(what, action, body, code, *words, status=status, side="meta")


OTHERS = [
    act(
        "an unknown action",
        "compact",
        {},
        "unknown_action",
        "'compact'",
        "ForceSnapshot",
        status=UNIMPLEMENTED,
    ),
    act("an action without a name", "", {}, "unknown_action", "''", status=UNIMPLEMENTED),
    meta(
        "an unknown action of the meta server",
        "compact",
        {},
        "unknown_action",
        "'compact'",
        status=UNIMPLEMENTED,
    ),
    meta(
        "a namespace that is not there",
        "DeleteNamespace",
        {"name": "x"},
        "namespace_not_found",
        "'x'",
    ),
    meta(
        "a namespace to count that is not there",
        "GetNamespaceDatasetCount",
        {"name": "x"},
        "namespace_not_found",
        "'x'",
    ),
    meta(
        "a namespace with datasets",
        "DeleteNamespace",
        {"name": "default"},
        "namespace_not_empty",
        "'default'",
        "2",
        status=FAILED,
    ),
    meta(
        "a namespace without a name",
        "CreateNamespace",
        {},
        "missing_key",
        "'name'",
        status="invalid argument",
    ),
    act(
        "a snapshot of what is not there",
        "ForceSnapshot",
        {"dataset": "x"},
        "dataset_not_found",
        "'x'",
        status=NOT_FOUND,
    ),
    act(
        "a snapshot with an unknown key",
        "ForceSnapshot",
        {"dateset": "x"},
        "unknown_key",
        "'dateset'",
    ),
    act("a backup without a name", "Backup", {}, "missing_key", "'name'"),
    act("a backup by a path", "Backup", {"name": "../x"}, "bad_backup_name", "'../x'"),
    act("a backup of one dataset", "Backup", {"dataset": "x"}, "unknown_key", "'dataset'"),
    act(
        "readiness with an unknown key",
        "check_readiness",
        {"datset": "x"},
        "unknown_key",
        "did you mean 'dataset'?",
    ),
]

NOT_YET = [
    ("add-edge", {"dataset": GOOD, "subject": 1, "predicate": "p", "object": 2, "weight": 1.0}),
    ("traverse-graph", {"dataset": GOOD, "start": 1, "max_hops": 2}),
    ("GetGraphStats", {"dataset": GOOD}),
]


@each(*DELETES)
def test_wrong_deletes_delete_nothing(target: Target, wrong: Wrong) -> None:
    target.check_refused(wrong)


@each(*BY_ID)
def test_wrong_searches_by_id_are_refused(target: Target, wrong: Wrong) -> None:
    target.check_refused(wrong)


@each(*OTHERS)
def test_other_actions_that_are_wrong_are_refused(target: Target, wrong: Wrong) -> None:
    target.check_refused(wrong)


@each(
    *[
        act(name, name, body, "unimplemented", f"'{name}'", "leave it out", status=UNIMPLEMENTED)
        for name, body in NOT_YET
    ]
)
def test_actions_that_are_not_there_yet_are_named(target: Target, wrong: Wrong) -> None:
    target.check_refused(wrong)


BODIES = {
    "JSON that ends early": (b'{"dataset": "good"', "bad_json", '{"dataset": "good"'),
    "nothing": (b"", "bad_json", "EOF"),
    "not UTF-8": (b"\xff\xfe", "bad_json", "not JSON"),
    "a list": (b"[1]", "bad_json", "[1]"),
    "a word": (b'"good"', "bad_json", '"good"'),
    "a number": (b"5", "bad_json", "5"),
    "null": (b"null", "bad_json", "null"),
}
WITH_BODY = ["delete", "delete-dataset", "VectorSearch", "VectorSearchByID"]


def bodies(action: str) -> list[Wrong]:
    def case(name: str) -> Wrong:
        body, code, word = BODIES[name]
        words = (word, "send an object")
        return Wrong(f"{action}: {name}", lambda wire: raw_act(wire, action, body), code, words)

    return [case(name) for name in BODIES]


@each(*[wrong for action in WITH_BODY for wrong in bodies(action)])
def test_bodies_that_are_no_objects_are_refused(target: Target, wrong: Wrong) -> None:
    target.check_refused(wrong)


def elsewhere(what: str, call, *words: str) -> Wrong:
    return Wrong(what, call, "wrong_server", words, UNIMPLEMENTED)


def put_on_meta(wire: Wire) -> None:
    schema = pa.schema([("id", pa.int64())])
    writer, reader = wire.meta.do_put(PATH("new"), schema)
    with writer:
        writer.done_writing()
        reader.read()


def exchange_on_meta(wire: Wire) -> None:
    writer, reader = wire.meta.do_exchange(COMMAND(b"VectorSearch"))
    with writer:
        writer.done_writing()
        list(reader)


FOR_META = [
    elsewhere("ListFlights", lambda wire: list(wire.data.list_flights()), "ListFlights"),
    elsewhere("GetFlightInfo", lambda wire: wire.data.get_flight_info(PATH(GOOD)), "GetFlightInfo"),
    elsewhere("ListActions", lambda wire: wire.data.list_actions(), "ListActions"),
] + [
    elsewhere(name, lambda wire, name=name: wire.act(name, {"name": "x"}), f"'{name}'")
    for name in ("MeshIdentity", "CreateNamespace", "DeleteNamespace", "ListNamespaces")
]
FOR_DATA = [
    elsewhere("DoPut", put_on_meta, "DoPut"),
    elsewhere("DoExchange", exchange_on_meta, "DoExchange"),
]


@each(*FOR_META)
def test_what_is_on_the_meta_server_is_sent_there(target: Target, wrong: Wrong) -> None:
    assert f"on the meta server, {target.server.meta}" in target.check_refused(wrong)


@each(*FOR_DATA)
def test_what_is_on_the_data_server_is_sent_there(target: Target, wrong: Wrong) -> None:
    assert f"on the data server, {target.server.data}" in target.check_refused(wrong)


def unknown(side: str, call: str) -> Wrong:
    def ask(wire: Wire) -> None:
        getattr(getattr(wire, side), call)(PATH("nowhere"))

    words = ("'nowhere'", "ListFlights")
    return Wrong(f"{call} of {side}", ask, "dataset_not_found", words, NOT_FOUND)


def described(descriptor: flight.FlightDescriptor, what: str, *words: str) -> Wrong:
    return Wrong(
        what, lambda wire: wire.meta.get_flight_info(descriptor), "wrong_descriptor", words
    )


@each(
    unknown("meta", "get_flight_info"),
    unknown("meta", "get_schema"),
    unknown("data", "get_schema"),
    described(COMMAND(b"good"), "info of a command", "CMD", "'good'"),
    described(PATH(), "info of an empty path", "0 elements"),
    described(PATH(GOOD, "x"), "info of a path of two", "good/x", "2 elements"),
)
def test_infos_and_schemas_of_what_is_not_there(target: Target, wrong: Wrong) -> None:
    target.check_refused(wrong)
