"""What is compared, each a process that builds once and then makes passes on request: Longbow's binary, and the peers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from line_child import LineChild, NotMeasured

__all__ = ["LONGBOW", "PREFIX", "NotMeasured", "Plan", "System", "longbow", "names", "peer"]

HERE = Path(__file__).resolve().parent
PREFIX = "longbow-"
# Longbow's indexes, by their names for `longbow bench ann --index`.
LONGBOW = ("rabitq", "sq8", "hnsw")
# As far as a search is concerned, the same as for the peers.
LONGBOW_SETTINGS = {
    "rabitq": "32 edges, ef_construction=160",
    "sq8": "32 edges, ef_construction=160",
    "hnsw": "m=16, ef_construction=200",
}
LONGBOW_SWEEP = (4, 6, 8, 10, 13, 16, 20, 24, 32, 40, 48, 64, 96, 128, 192)
ONE_THREAD = {
    name: "1"
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")
}
BUILD_SECONDS = 1200.0
PASS_SECONDS = 120.0
STOP_SECONDS = 10.0


@dataclass(frozen=True)
class Plan:
    """How a system is started, and the breadths that it is measured at."""

    name: str
    command: tuple[str, ...]
    sweep: tuple[int, ...]
    settings: str | None = None


def longbow(binary: Path, index: str, folder: Path, metric: str) -> Plan:
    """One of Longbow's indexes over a set."""
    files = (f"--{part}={folder / part}.npy" for part in ("base", "queries", "truth"))
    command = (str(binary), "bench", "ann", *files, f"--metric={metric}", f"--index={index}", "--serve")
    return Plan(PREFIX + index, command, LONGBOW_SWEEP, LONGBOW_SETTINGS[index])


def peer(name: str, sweep: tuple[int, ...], folder: Path, metric: str) -> Plan:
    """One of the peers over a set."""
    command = (sys.executable, str(HERE / "adapter_child.py"), name, str(folder), metric)
    return Plan(name, command, sweep)


class System(LineChild):
    """A running process that speaks the protocol of `longbow bench ann --serve`."""

    stop_seconds = STOP_SECONDS

    def __init__(self, plan: Plan, log: Path) -> None:
        super().__init__(plan.command, log, ONE_THREAD)
        self.plan = plan
        try:
            self.ready: dict[str, Any] = self.answer(BUILD_SECONDS)["ready"]
        except BaseException:
            self.stop()
            raise
        if plan.settings is not None:
            self.ready["settings"] = plan.settings

    def point(self, effort: int, batched: bool) -> dict[str, Any]:
        """One pass over all queries."""
        self.send({"effort": effort, "batched": batched})
        return self.answer(PASS_SECONDS)


def names(peers: Sequence[str]) -> list[str]:
    """All that can be compared, Longbow first."""
    return [*(PREFIX + index for index in LONGBOW), *peers]
