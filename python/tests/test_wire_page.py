"""The page of the wire: its example runs, and it names what there is."""

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as flight
import pytest

PAGE = (Path(__file__).parents[2] / "docs/wire.md").read_text()


def test_the_example_runs_with_arrow_alone(server, dataset) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    example = example.replace("grpc://127.0.0.1:3000", server.uri).replace('"words"', repr(dataset))
    after: dict = {}
    exec(example, after)
    assert (after["told"]["rows"], after["told"]["searchable"]) == (3, True)
    assert after["found"]["title"].to_pylist() == ["right", "almost right"]
    assert after["how"]["returned"] == 2
    assert after["deleted"][0]["rows"] == 1
    assert sorted(after["left"]["id"].to_pylist()) == [1, 3]


def test_the_page_names_every_action_and_key(server) -> None:
    meta = flight.connect(server.meta_uri)
    sql = ("PreparedStatement", "Transaction", "Savepoint", "Query")
    for action in meta.list_actions():
        assert f"`{action.type}`" in PAGE or any(word in action.type for word in sql), action.type
    wrong = {"search": {"dataset": "x", "no_such_key": 1}}
    data = flight.connect(server.uri)
    with pytest.raises(pa.ArrowException) as refused:
        data.do_get(flight.Ticket(json.dumps(wrong))).read_all()
    keys = re.search(r"Known: ([a-z_, ]+)", str(refused.value))
    assert keys is not None, refused.value
    for key in keys[1].split(", "):
        assert f"`{key}`" in PAGE, key
