"""Fixtures: one engine each way for the whole run, and a dataset of its own for each test."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "tests"))

from server import Server
from wire import Wire

import longbow

_numbers = itertools.count()

BOOKS = [
    {"id": "b1", "vector": [0.1, 0.2, 0.3], "title": "Dune", "year": 1965},
    {"id": "b2", "vector": [0.2, 0.2, 0.4], "title": "Emma", "year": 1815},
    {"id": "b3", "vector": [0.9, 0.1, 0.1], "title": "Ulysses", "year": 1922},
    {"id": "b4", "vector": [0.9, 0.8, 0.7], "title": "Solaris", "year": 1961},
]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server that tests share; each uses datasets of its own."""
    running = Server(tmp_path_factory.mktemp("server") / "data")
    yield running
    running.stop()


@pytest.fixture(scope="session")
def remote(server: Server) -> Iterator[longbow.LongbowClient]:
    """A client of the shared server."""
    with longbow.connect(server.uri, server.meta_uri) as connected:
        yield connected


@pytest.fixture(scope="session", params=["network", "memory", "path"])
def client(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[longbow.LongbowClient | longbow.Database]:
    """One engine, three ways: what is true of one of them is true of all."""
    if request.param == "network":
        yield request.getfixturevalue("remote")
        return
    path = tmp_path_factory.mktemp("engine") / "data" if request.param == "path" else None
    with longbow.open(path) as database:
        yield database


@pytest.fixture(scope="session")
def wire(server: Server) -> Wire:
    """The shared server, spoken to with pyarrow alone."""
    return Wire(server.data, server.meta)


@pytest.fixture
def dataset() -> str:
    """A name that no other test uses."""
    return f"dataset_{next(_numbers)}"


@pytest.fixture
def books(client: longbow.LongbowClient | longbow.Database, dataset: str) -> str:
    """A dataset with the four books of the examples."""
    client.insert(dataset, BOOKS)
    return dataset


@pytest.fixture(autouse=True)
def _examples(request: pytest.FixtureRequest) -> Iterator[None]:
    """The examples in docstrings see ``client`` and a fresh dataset ``books``."""
    if not isinstance(request.node, pytest.DoctestItem):
        yield
        return
    import pyarrow

    names = request.getfixturevalue("doctest_namespace")
    names.update(longbow=longbow, pa=pyarrow)
    # Pure functions are shown without a server; only these ask for one.
    source = "".join(example.source for example in request.node.dtest.examples)
    if "client" not in source:
        yield
        return
    client = request.getfixturevalue("remote")
    client.insert("books", BOOKS)
    names["client"] = client
    yield
    for name in ("books", "notes", "films"):
        if any(info.name == name for info in client.list_datasets()):
            client.delete_dataset(name)
