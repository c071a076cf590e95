"""DoAction as the contract says, with pyarrow alone."""

import json

import pyarrow as pa
import pytest
from wire import refused, rows


@pytest.fixture
def ten(wire, dataset) -> str:
    wire.put(dataset, rows(10))
    return dataset


MEMBER = {"ID", "Addr", "GRPCAddr", "MetaAddr", "Tags", "Status", "Incarnation", "LastSeen"}


@pytest.mark.parametrize("side", ["data", "meta"])
def test_one_server_is_a_cluster_of_one(wire, side) -> None:
    told = wire.act_json("cluster-status", side=side)
    assert told["count"] == len(told["members"]) == 1
    assert MEMBER <= set(told["self"])
    assert told["self"]["ID"] == told["members"][0]["ID"]
    assert told["self"]["Status"] == 0


def test_the_mesh_is_told_by_the_meta_server(wire) -> None:
    assert MEMBER <= set(wire.act_json("MeshIdentity", side="meta"))
    (member,) = wire.act_json("MeshStatus", side="meta")
    assert MEMBER <= set(member)
    assert {"provider", "peers"} <= set(wire.act_json("DiscoveryStatus", side="meta"))


@pytest.mark.parametrize("side", ["data", "meta"])
def test_readiness(wire, ten, side) -> None:
    told = wire.act_json("check_readiness", {"dataset": ten}, side)
    assert told["status"] in ("READY", "BUSY")
    assert told["rows"] == 10
    told = wire.act_json("check_readiness", {"dataset": "nowhere"}, side)
    assert told["status"] == "NOT_FOUND"
    assert wire.act_json("check_readiness", side=side)["status"] in ("READY", "BUSY")


@pytest.mark.parametrize("side", ["data", "meta"])
def test_a_search_is_an_ipc_stream_a_query(wire, ten, side) -> None:
    body = {"dataset": ten, "vectors": [[3.0, 1.0], [8.0, 1.0]], "k": 2, "columns": ["name"]}
    streams = wire.act("VectorSearch", body, side)
    tables = [pa.ipc.open_stream(stream).read_all() for stream in streams]
    assert [table["id"].to_pylist()[0] for table in tables] == [3, 8]
    assert [table["name"].to_pylist()[0] for table in tables] == ["name-3", "name-8"]


@pytest.mark.parametrize("side", ["data", "meta"])
def test_a_search_by_id(wire, ten, side) -> None:
    told = wire.act_json("VectorSearchByID", {"dataset": ten, "id": 4, "k": 3}, side)
    assert set(told) == {"ids", "scores"}
    assert len(told["ids"]) == len(told["scores"]) == 3
    assert set(told["ids"]) <= {2, 3, 4, 5, 6}
    assert told["scores"] == sorted(told["scores"], reverse=True)


DELETES = [
    ("delete", {"id": 3}, [3]),
    ("Delete", {"id": 3}, [3]),
    ("delete", {"ids": [3, 4]}, [3, 4]),
    ("delete", {"filters": [{"field": "id", "operator": ">=", "value": 8}]}, [8, 9]),
]


@pytest.mark.parametrize("side", ["data", "meta"])
@pytest.mark.parametrize("name, body, gone", DELETES)
def test_deletes(wire, ten, name, body, gone, side) -> None:
    assert wire.act(name, {"dataset": ten, **body}, side) == [b"deleted"]
    assert wire.get(ten)["id"].to_pylist() == [n for n in range(10) if n not in gone]


def test_how_many_were_deleted_is_told_to_who_asks(wire, ten) -> None:
    body = {"dataset": ten, "where": "id >= 8", "count": True}
    told = json.loads(wire.act("delete", body)[0])
    assert (told["status"], told["rows"], told["offset"] > 0) == ("deleted", 2, True)
    assert json.loads(wire.act("delete", body)[0])["rows"] == 0


def test_a_text_id_is_deleted_as_text(wire, dataset) -> None:
    wire.put(dataset, rows(2).set_column(0, "id", pa.array(["7", "x"])))
    assert wire.act("delete", {"dataset": dataset, "id": "7"}) == [b"deleted"]
    assert wire.get(dataset)["id"].to_pylist() == ["x"]


def test_one_unknown_id_deletes_nothing(wire, ten) -> None:
    with refused(pa.ArrowKeyError, "id_not_found", "99"):
        wire.act("delete", {"dataset": ten, "ids": [1, 99]})
    assert wire.get(ten).num_rows == 10


@pytest.mark.parametrize("side", ["data", "meta"])
def test_a_dataset_is_deleted(wire, ten, side) -> None:
    assert wire.act("delete-dataset", {"dataset": ten}, side) == [b"deleted"]
    with refused(pa.ArrowKeyError, ten):
        wire.get(ten)


def test_namespaces(wire) -> None:
    before = wire.act_json("GetTotalNamespaceCount", side="meta")["count"]
    assert wire.act_json("CreateNamespace", {"name": "ns"}, "meta") == {"status": "created"}
    told = wire.act_json("ListNamespaces", side="meta")
    assert "ns" in told["namespaces"]
    assert told["count"] == len(told["namespaces"]) == before + 1
    assert wire.act_json("GetNamespaceDatasetCount", {"name": "ns"}, "meta") == {"count": 0}
    assert wire.act_json("DeleteNamespace", {"name": "ns"}, "meta") == {"status": "deleted"}
    assert "ns" not in wire.act_json("ListNamespaces", side="meta")["namespaces"]


def test_deleting_a_namespace_by_its_dataset(wire, ten) -> None:
    assert wire.act_json("DeleteNamespace", {"dataset": ten}, "meta") == {"status": "deleted"}
    with refused(pa.ArrowKeyError, ten):
        wire.get(ten)


@pytest.mark.parametrize("side", ["data", "meta"])
def test_a_snapshot_is_made(wire, ten, side) -> None:
    for body in (None, {"dataset": ten}):
        told = wire.act_json("ForceSnapshot", body, side)
        assert told["status"] == "created"
        assert told["snapshot"] is not None
    with refused(pa.ArrowKeyError, "nowhere"):
        wire.act("ForceSnapshot", {"dataset": "nowhere"}, side)


def test_the_meta_server_lists_its_actions(wire) -> None:
    listed = {action.type for action in wire.meta.list_actions()}
    assert {"cluster-status", "check_readiness", "VectorSearch", "delete", "Delete"} <= listed
    assert {"CreateNamespace", "ListNamespaces", "ForceSnapshot", "delete-dataset"} <= listed


META_ONLY = ["MeshIdentity", "CreateNamespace", "ListNamespaces"]


@pytest.mark.parametrize("name", META_ONLY)
def test_an_action_on_the_wrong_server_says_where_to_go(wire, name) -> None:
    with refused(pa.ArrowException, "meta"):
        wire.act(name, {"name": "x"}, "data")


REFUSED = [
    ("no-such-action", {}, pa.ArrowNotImplementedError, "no-such-action"),
    ("delete", {"id": 1}, pa.ArrowInvalid, "dataset"),
    ("delete", {"dataset": "nowhere", "id": 1}, pa.ArrowKeyError, "nowhere"),
    ("delete", {"dataset": "DATASET"}, pa.ArrowInvalid, "id"),
    ("delete", {"dataset": "DATASET", "idd": 1}, pa.ArrowInvalid, "idd"),
    ("delete", {"dataset": "DATASET", "id": 1.5}, pa.ArrowInvalid, "id"),
    ("delete", {"dataset": "DATASET", "id": 1, "ids": [2]}, pa.ArrowInvalid, "ids"),
    ("delete-dataset", {}, pa.ArrowInvalid, "dataset"),
    ("delete-dataset", {"dataset": "nowhere"}, pa.ArrowKeyError, "nowhere"),
    ("VectorSearch", {"dataset": "DATASET", "vector": [1.0]}, pa.ArrowInvalid, "expected 2, got 1"),
    ("VectorSearchByID", {"dataset": "DATASET", "id": 99, "k": 1}, pa.ArrowKeyError, "99"),
    ("VectorSearchByID", {"dataset": "DATASET", "id": 1, "k": 0}, pa.ArrowInvalid, "0"),
    ("HybridSearch", {"dataset": "DATASET", "k": 1}, pa.ArrowInvalid, "vector"),
    ("add-edge", {"dataset": "DATASET"}, pa.ArrowNotImplementedError, "graph"),
]


@pytest.mark.parametrize("name, body, kind, word", REFUSED)
def test_actions_that_are_wrong_say_how(wire, ten, name, body, kind, word) -> None:
    body = {key: ten if value == "DATASET" else value for key, value in body.items()}
    with refused(kind, word):
        wire.act(name, body)
    assert wire.get(ten).num_rows == 10


def test_a_body_that_is_not_json_is_refused(wire) -> None:
    import pyarrow.flight as flight

    for body in (b"{", b"\xff", b"[]", json.dumps("x").encode()):
        with pytest.raises(pa.ArrowInvalid):
            list(wire.data.do_action(flight.Action("delete", body)))
