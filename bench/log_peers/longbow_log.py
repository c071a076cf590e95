"""Longbow's log, by the binary's own benchmark: `longbow bench log concurrent`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from case import ENTRY_BYTES, Case, Figures, NotMeasured, Peer, Window
from child import run

NAME = "longbow"
POLICIES = {NAME: "fdatasync before each acknowledgement; entries that wait at the same time share a sync"}


@contextmanager
def peers(folder: Path, binary: Path) -> Iterator[list[Peer]]:
    """A new log for each measurement, in `folder`."""
    if not binary.exists():
        raise NotMeasured(f"{binary} is not there: build it with `cargo build --release`, or pass --binary")
    yield [Peer(NAME, POLICIES[NAME], lambda case, window: measure(binary, folder, case, window))]


def measure(binary: Path, folder: Path, case: Case, window: Window) -> Figures:
    """One run of the binary; it warms up by itself."""
    with TemporaryDirectory(prefix="longbow-", dir=folder) as place:
        command = [binary, "bench", "log", "concurrent", "--dir", place, "--entry-bytes", ENTRY_BYTES]
        command += ["--callers", case.callers, "--batch", case.rows, "--mode", case.mode]
        command += ["--sync", "fdatasync", "--seconds", window.seconds, "--json", "-"]
        return in_report(run([str(part) for part in command], window.timeout), case)


def in_report(printed: str, case: Case) -> Figures:
    """The row of this case in the report."""
    report = json.loads(printed)
    rows: list[dict[str, Any]] = report["rows"]
    for row in rows:
        if (row["callers"], row["batch"], row["mode"]) == (case.callers, case.rows, case.mode):
            latencies = (row[name] / 1e3 for name in ("p50_us", "p95_us", "p99_us"))
            return Figures(row["entries_per_s"], *latencies)
    raise NotMeasured(f"the report has no row of {case}")
