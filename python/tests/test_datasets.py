"""Datasets, deletes, namespaces, readiness, snapshots."""

import itertools

import numpy as np
import pyarrow as pa
import pytest

import longbow
from longbow import Readiness

MATRIX = np.random.default_rng(5).random((100, 4), dtype="f4")


CALLS = {
    "insert": lambda client, name: client.insert(name, MATRIX),
    "delete": lambda client, name: client.delete(name, 1),
    "search": lambda client, name: client.search(name, MATRIX[0]),
    "search_numpy": lambda client, name: client.search_numpy(name, MATRIX[0]),
    "search_numpy of several": lambda client, name: client.search_numpy(name, MATRIX),
    "search_by_id": lambda client, name: client.search_by_id(name, 1),
    "search_many": lambda client, name: client.search_many(name, MATRIX),
    "get": lambda client, name: client.get(name, 1),
    "download_arrow": lambda client, name: client.download_arrow(name),
    "get_info": lambda client, name: client.get_info(name),
    "delete_dataset": lambda client, name: client.delete_dataset(name),
    "wait_until_indexed": lambda client, name: client.wait_until_indexed(name),
    "create_namespace": lambda client, name: client.create_namespace(name),
    "delete_namespace": lambda client, name: client.delete_namespace(name),
}


@pytest.mark.parametrize("name", [5, None, b"photos", ["photos"]], ids=repr)
@pytest.mark.parametrize("call", CALLS)
def test_a_name_that_is_no_text_is_refused(client, call, name) -> None:
    before = [info.name for info in client.list_datasets()]
    with pytest.raises(longbow.InvalidArgument, match="name is") as caught:
        CALLS[call](client, name)
    assert caught.value.code == "bad_name"
    assert repr(name) in caught.value.message
    assert [info.name for info in client.list_datasets()] == before


@pytest.mark.parametrize("wrong", [2.5, 2.0, np.float32(2), True, np.True_, None, [2]], ids=str)
def test_an_id_that_is_none_is_refused(client, dataset, wrong) -> None:
    client.insert(dataset, MATRIX)
    calls = [
        lambda: client.get(dataset, wrong),
        lambda: client.search_by_id(dataset, wrong),
        lambda: client.search(dataset, ids=[wrong]),
        lambda: client.search(dataset, ids=[1], negative_ids=[wrong]),
        lambda: client.delete(dataset, [1, wrong]),
    ]
    for call in calls:
        with pytest.raises(longbow.InvalidArgument) as caught:
            call()
        assert caught.value.code == "bad_value"
        assert "integer or a text" in caught.value.message
    assert client.get_info(dataset).rows == 100


def ids(client, dataset) -> list:
    return sorted(client.download_arrow(dataset, ["id"])["id"].to_pylist())


@pytest.mark.parametrize(
    "gone", [3, np.int64(3), [3, 5], np.array([3, 5]), pa.array([3, 5]), range(3, 6)], ids=str
)
def test_deleted_rows_are_gone_everywhere(client, dataset, gone) -> None:
    client.insert(dataset, MATRIX)
    missing = {gone} if np.isscalar(gone) else set(np.asarray(gone).tolist())
    assert client.delete(dataset, gone) == len(missing)
    left = sorted(set(range(100)) - missing)
    assert ids(client, dataset) == left
    assert client.get_info(dataset).rows == len(left)
    found = client.search(dataset, MATRIX[3], k=100)
    assert sorted(found["id"].to_pylist()) == left
    filtered = client.download_arrow(dataset, filters=("id", "<", 10))
    assert set(filtered["id"].to_pylist()) == set(left) & set(range(10))


def test_deleted_rows_stay_gone_once_indexed(client, dataset) -> None:
    client.insert(dataset, MATRIX)
    client.wait_until_indexed(dataset)
    client.delete(dataset, list(range(50)))
    found = client.search(dataset, MATRIX[0], k=100)
    assert sorted(found["id"].to_pylist()) == list(range(50, 100))


def test_an_unknown_dataset_is_told_with_the_nearest_name(client, dataset) -> None:
    client.insert(dataset, MATRIX)
    with pytest.raises(longbow.NotFound, match="did you mean 'dataset"):
        client.search(dataset[:-1] + "x", MATRIX[0])


def test_delete_by_a_filter(client, dataset) -> None:
    client.insert(dataset, MATRIX)
    client.delete(dataset, filters=("id", ">=", 90))
    assert ids(client, dataset) == list(range(90))


def test_a_deleted_id_can_come_back(client, dataset) -> None:
    client.insert(dataset, MATRIX)
    client.delete(dataset, 1)
    client.insert(dataset, MATRIX[:1], ids=[1])
    assert client.get(dataset, 1)["vector"] == MATRIX[0].tolist()


def test_unknown_ids_are_not_found_and_nothing_is_deleted(client, dataset) -> None:
    client.insert(dataset, MATRIX)
    for unknown in (100, [1, 100], "one"):
        with pytest.raises(longbow.LongbowError) as caught:
            client.delete(dataset, unknown)
        assert isinstance(caught.value, (longbow.NotFound, longbow.InvalidArgument))
    assert len(ids(client, dataset)) == 100
    with pytest.raises(longbow.NotFound):
        client.delete("nowhere", 1)


def test_what_is_known_about_a_dataset(client, dataset) -> None:
    client.insert(dataset, {"id": range(100), "vector": MATRIX, "n": [1] * 100}, metric="cosine")
    info = client.get_info(dataset)
    assert (info.name, info.rows) == (dataset, 100)
    assert info.bytes >= MATRIX.nbytes
    assert info.schema.names == ["id", "vector", "n"]
    assert info.schema.metadata[b"longbow.metric"] == b"cosine"
    (listed,) = [one for one in client.list_datasets() if one.name == dataset]
    assert listed == info


def test_a_deleted_dataset_is_gone_and_can_be_made_anew(client, dataset) -> None:
    client.insert(dataset, MATRIX)
    client.delete_dataset(dataset)
    for call in (client.get_info, client.delete_dataset, client.download_arrow):
        with pytest.raises(longbow.NotFound):
            call(dataset)
    assert client.ready(dataset).status == "NOT_FOUND"
    client.insert(dataset, np.ones((2, 9), "f4"))
    assert ids(client, dataset) == [0, 1]


def test_names_of_any_kind(client) -> None:
    for name in ("space and ü", "a.b-c_d", "a/b", "x" * 200):
        client.insert(name, MATRIX)
        assert client.get_info(name).rows == 100
        assert client.search(name, MATRIX[0], k=1)["id"].to_pylist() == [0]
        client.delete_dataset(name)


@pytest.mark.parametrize("name", ["", "..", "../x", "/abs", "{json", "a\nb"])
def test_names_that_are_refused(client, name) -> None:
    with pytest.raises(longbow.InvalidArgument):
        client.insert(name, MATRIX)


def test_namespaces(client) -> None:
    client.create_namespace("team_a")
    assert "team_a" in client.list_namespaces()
    client.delete_namespace("team_a")
    assert "team_a" not in client.list_namespaces()
    with pytest.raises(longbow.NotFound):
        client.delete_namespace("team_a")


def test_status(remote) -> None:
    status = remote.status()
    assert status["count"] == len(status["members"]) == 1
    assert status["self"]["ID"] == status["members"][0]["ID"]


def test_snapshots(client, books) -> None:
    first, second = client.snapshot(), client.snapshot(books)
    assert first and second
    with pytest.raises(longbow.NotFound):
        client.snapshot("nowhere")


def test_waiting_for_the_index(client, dataset) -> None:
    client.insert(dataset, MATRIX)
    state = client.wait_until_indexed(dataset)
    assert state and (state.status, state.rows, state.index_len) == ("READY", 100, 100)
    assert client.ready().status in ("READY", "BUSY")
    with pytest.raises(longbow.NotFound):
        client.wait_until_indexed("nowhere")


def test_waiting_pauses_longer_and_longer_and_gives_up(monkeypatch) -> None:
    client = longbow.LongbowClient()
    pauses: list[float] = []
    busy = Readiness("BUSY", rows=10, index_len=4)
    monkeypatch.setattr(client, "ready", lambda dataset: busy)
    with pytest.raises(longbow.DeadlineExceeded, match="BUSY after 3.0 s: 4 of 10 rows indexed"):
        client.wait_until_indexed("d", 3.0, pause=pauses.append, clock=lambda: sum(pauses))
    assert pauses[:3] == [0.005, 0.01, 0.02]
    assert max(pauses) == 0.5
    assert sum(pauses) == pytest.approx(3.0)


def test_waiting_ends_when_ready(monkeypatch) -> None:
    client = longbow.LongbowClient()
    states = itertools.chain([Readiness("BUSY")] * 3, [Readiness("READY")])
    monkeypatch.setattr(client, "ready", lambda dataset: next(states))
    assert client.wait_until_indexed("d", pause=lambda _: None)
