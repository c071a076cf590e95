"""What is measured, the same for every system: who appends how much, for how long, and the figures that come of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

ENTRY_BYTES = 1024

BLOCKING = "blocking"
PIPELINED = "pipelined"


class NotMeasured(Exception):
    """A system, or one case of it, that cannot be had here; the text says why."""


@dataclass(frozen=True)
class Case:
    """`callers` at once; each commits `rows` entries of 1 KB and, in blocking mode, waits until they are acknowledged
    before it goes on. In pipelined mode a caller has up to 4 x `rows` entries under way."""

    callers: int
    rows: int
    mode: str = BLOCKING

    @property
    def title(self) -> str:
        """For the table."""
        callers = f"{self.callers} caller{'s' if self.callers > 1 else ''}"
        if self.mode == PIPELINED:
            return f"{callers}, pipelined, up to {4 * self.rows:,} rows under way"
        return f"{callers}, {self.rows} row{'s' if self.rows > 1 else ''} a commit"


@dataclass(frozen=True)
class Window:
    """Seconds that do not count, and then seconds that do."""

    warmup: float
    seconds: float

    @property
    def timeout(self) -> float:
        """When a load that should have ended long ago is given up."""
        return 10 * (self.warmup + self.seconds) + 120


@dataclass(frozen=True)
class Figures:
    """Entries acknowledged a second, and milliseconds from handing in a commit to its acknowledgement."""

    entries_per_s: float
    p50_ms: float
    p95_ms: float
    p99_ms: float

    @property
    def mb_per_s(self) -> float:
        """Payload alone."""
        return self.entries_per_s * ENTRY_BYTES / 1e6


@dataclass(frozen=True)
class Peer:
    """One system under one sync policy. `policy` says what is on disk when an acknowledgement is given."""

    name: str
    policy: str
    measure: Callable[[Case, Window], Figures]


def figures(latencies_us: np.ndarray, rows: int, seconds: float) -> Figures:
    """Of the commits that ended within a window of `seconds`; `latencies_us` holds one value a commit."""
    if len(latencies_us) == 0:
        raise NotMeasured(f"not one commit ended within {seconds:g} s")
    p50, p95, p99 = np.percentile(latencies_us, (50, 95, 99)) / 1e3
    return Figures(len(latencies_us) * rows / seconds, float(p50), float(p95), float(p99))
