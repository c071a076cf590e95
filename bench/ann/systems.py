"""What is compared, each a process that builds once and then makes passes on request: Longbow's binary, and the peers."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PREFIX = "longbow-"
# Longbow's indexes, by their names for `longbow bench ann --index`.
LONGBOW = ("rabitq", "sq8", "hnsw")
# As far as a search is concerned, the same as for the peers.
LONGBOW_SETTINGS = {
    "rabitq": "32 edges, ef_construction=128",
    "sq8": "32 edges, ef_construction=128",
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


class NotMeasured(Exception):
    """A system that cannot be had here, or that failed; the text says why."""


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


class System:
    """A running process that speaks the protocol of `longbow bench ann --serve`. What it prints besides goes to `log`."""

    def __init__(self, plan: Plan, log: Path) -> None:
        self.plan, self.log = plan, log
        self.unread = b""
        try:
            with log.open("wb") as errors:
                self.process = subprocess.Popen(
                    plan.command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env=os.environ | ONE_THREAD,
                    bufsize=0,
                )
        except OSError as error:
            raise NotMeasured(f"does not start: {error}") from None
        try:
            self.ready: dict[str, Any] = self._answer(BUILD_SECONDS)["ready"]
        except BaseException:
            self.stop()
            raise
        if plan.settings is not None:
            self.ready["settings"] = plan.settings

    def point(self, effort: int, batched: bool) -> dict[str, Any]:
        """One pass over all queries."""
        request = json.dumps({"effort": effort, "batched": batched}) + "\n"
        try:
            self.process.stdin.write(request.encode())
        except OSError as error:
            raise NotMeasured(f"takes no more requests: {error}") from None
        return self._answer(PASS_SECONDS)

    def stop(self) -> None:
        """The end of its input ends it, and a signal to its pid if that does not."""
        self.process.stdin.close()
        for gently in (signal.SIGTERM, signal.SIGKILL):
            try:
                self.process.wait(STOP_SECONDS)
                break
            except subprocess.TimeoutExpired:
                self.process.send_signal(gently)
        self.process.wait()
        self.process.stdout.close()

    def _answer(self, seconds: float) -> dict[str, Any]:
        line = self._line(time.monotonic() + seconds, seconds)
        try:
            answer = json.loads(line)
        except ValueError:
            raise NotMeasured(f"answered {line[:200]!r}") from None
        if why := answer.get("error"):
            raise NotMeasured(why)
        return answer

    def _line(self, deadline: float, seconds: float) -> bytes:
        out = self.process.stdout
        while b"\n" not in self.unread:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([out], [], [], left)[0]:
                self.process.kill()
                raise NotMeasured(f"no answer within {seconds:.0f} s")
            if not (more := out.read(1 << 16)):
                self.process.wait()
                raise NotMeasured(f"ended ({self.process.returncode}): {self._last_words()}")
            self.unread += more
        line, _, self.unread = self.unread.partition(b"\n")
        return line

    def _last_words(self) -> str:
        lines = [line.strip() for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        return lines[-1][:300] if lines else "it printed nothing"


def names(peers: Sequence[str]) -> list[str]:
    """All that can be compared, Longbow first."""
    return [*(PREFIX + index for index in LONGBOW), *peers]
