"""The server that wrong inputs are sent to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from server import Server
from wrong import Target


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A server of its own, so that all of its state can be compared."""
    server = Server(tmp_path_factory.mktemp("wrong") / "data")
    yield Target(server).fill()
    assert server.stop() == 0


class Restarts:
    """A server on a folder that stays while it is stopped, killed and started again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.server: Server | None = None

    def start(self, *arguments: str) -> Target:
        self.server = Server(self.path, *arguments)
        return Target(self.server)

    def again(self, *arguments: str) -> Target:
        """As after ``kill -9``."""
        self.end()
        return self.start(*arguments)

    def end(self) -> None:
        """Kills the server, if there is one."""
        if self.server is not None:
            self.server.kill()


@pytest.fixture
def restarts(tmp_path: Path) -> Iterator[Restarts]:
    """A folder, and a server that can be started on it."""
    made = Restarts(tmp_path / "data")
    yield made
    made.end()
