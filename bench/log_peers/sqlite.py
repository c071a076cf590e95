"""SQLite in WAL mode. It has one writer at a time and no group commit: each transaction pays a sync of its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from bench_path import HERE
from case import (
    BLOCKING,
    ENTRY_BYTES,
    Case,
    Figures,
    NotMeasured,
    Peer,
    Window,
    figures,
)
from child import run

NAME = "sqlite"
POLICIES = {
    NAME: "journal_mode=WAL, synchronous=FULL: the WAL is synced in each COMMIT; checkpoint each 1,000 pages"
}


@contextmanager
def peers(folder: Path) -> Iterator[list[Peer]]:
    """A new database for each measurement, in `folder`."""
    yield [Peer(NAME, POLICIES[NAME], lambda case, window: measure(folder, case, window))]


def measure(folder: Path, case: Case, window: Window) -> Figures:
    """The callers are threads of one process that take turns at one connection, in the order of asking. Processes with
    connections of their own commit about as many, but wait for SQLite's lock by sleeping while whoever had it last takes
    it again, so that some wait for seconds."""
    if case.mode != BLOCKING:
        raise NotMeasured("a connection commits one transaction after another")
    with TemporaryDirectory(prefix="sqlite-", dir=folder) as place:
        out = Path(place) / "taken"
        command = [sys.executable, HERE / "sqlite_callers.py", Path(place) / "entries.db", out]
        numbers = (case.callers, case.rows, window.warmup, window.seconds, ENTRY_BYTES)
        run([*command, *(str(number) for number in numbers)], window.timeout)
        return figures(np.fromfile(out, dtype=np.int64), case.rows, window.seconds)
