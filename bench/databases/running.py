"""A peer while it is measured: its process, and what it said."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import peers
from database_process import NotMeasured, Process
from database_report import Measured

#: Of one pass, in seconds. A slow database makes fewer queries; a fast one makes them again, for its pass would be over within
#: milliseconds.
TIMES = {"within": 2.0, "again": 0.5}
#: Passes go on for at least so long between two changes.
REST_SECONDS = 15.0
BUILD_TIMEOUT, PASS_TIMEOUT = 3_600.0, 300.0


class Running:
    """A peer's process, while it answers, and what it said."""

    def __init__(self, peer: peers.Peer, command: list[str], work: Path, binary: Path) -> None:
        self.peer, self.work = peer, work
        self.measured = Measured(peer.name)
        self._command = command
        self._environment = {"LONGBOW_BIN": str(binary)}
        self._process: Process | None = None

    def ask(self, do: str, seconds: float = PASS_TIMEOUT, **request: Any) -> dict[str, Any]:
        """Asks its process, which is started if there is none."""
        if self._process is None:
            log = self.work.parent / f"{self.peer.name}.log"
            self._process = Process(self._command, log, self._environment)
        return self._process.ask(do, seconds, **request)

    def stop(self) -> None:
        """Ends the process; another question starts a new one."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def attempt(self, work: Callable[[Running], None]) -> None:
        """Does a part of the measuring, unless an earlier one failed."""
        if self.measured.not_measured is None:
            try:
                work(self)
            except NotMeasured as why:
                self.measured.not_measured = str(why)
                self.stop()


def in_turns(wanted: list[Running], rounds: int, one_round: Callable[[Running], None]) -> None:
    """Builds all, and alternates their rounds: each time another is the first."""
    for running in wanted:
        running.attempt(build)
    for number in range(rounds):
        print(f"  round {number + 1} of {rounds} ...", file=sys.stderr, flush=True)
        first = number % len(wanted)
        for running in wanted[first:] + wanted[:first]:
            running.attempt(one_round)


def build(running: Running) -> None:
    """All rows in, and indexed."""
    print(f"  building {running.peer.name} ...", file=sys.stderr, flush=True)
    running.measured.built = running.ask("build", BUILD_TIMEOUT)
