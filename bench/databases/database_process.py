"""A child and its answers."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

STOP_SECONDS = 60.0


class NotMeasured(Exception):
    """A system that cannot be had here, or that failed; the text says why."""


class Process:
    """A process that answers each line with a line. What it prints besides goes to `log`."""

    def __init__(self, command: list[str], log: Path, environment: dict[str, str]) -> None:
        self.log, self.unread = log, b""
        try:
            with log.open("ab") as errors:
                self.process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env=os.environ | environment,
                    bufsize=0,
                )
        except OSError as error:
            raise NotMeasured(f"does not start: {error}") from None

    def ask(self, do: str, seconds: float, **request: Any) -> dict[str, Any]:
        """The answer to one request, which must come within so many seconds."""
        try:
            self.process.stdin.write(json.dumps({"do": do, **request}).encode() + b"\n")
        except OSError as error:
            raise NotMeasured(f"takes no more requests: {error}; {self._last_words()}") from None
        line = self._line(time.monotonic() + seconds, f"no answer to {do} within {seconds:.0f} s")
        try:
            answer: dict[str, Any] = json.loads(line)
        except ValueError:
            raise NotMeasured(f"answered {line[:200]!r}") from None
        if why := answer.get("error"):
            raise NotMeasured(f"{do}: {why}")
        return answer

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

    def _line(self, deadline: float, late: str) -> bytes:
        out = self.process.stdout
        while b"\n" not in self.unread:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([out], [], [], left)[0]:
                self.process.kill()
                raise NotMeasured(late)
            if not (more := out.read(1 << 16)):
                self.process.wait()
                raise NotMeasured(f"ended ({self.process.returncode}): {self._last_words()}")
            self.unread += more
        line, _, self.unread = self.unread.partition(b"\n")
        return line

    def _last_words(self) -> str:
        lines = [line.strip() for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        return lines[-1][:300] if lines else "it printed nothing"
