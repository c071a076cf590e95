"""A child process that answers each line with a line: how the comparisons talk to what they measure."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class NotMeasured(Exception):
    """A system that cannot be had here, or that failed; the text says why."""


class LineChild:
    """A running process. Requests and answers are JSON; what it prints besides goes to `log`."""

    #: How long it may take to end.
    stop_seconds = 60.0

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
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

    def send(self, request: Mapping[str, Any]) -> None:
        """Asks for something."""
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
        except OSError as error:
            raise NotMeasured(f"takes no more requests: {error}; {self._last_words()}") from None

    def answer(self, seconds: float) -> dict[str, Any]:
        """The next answer, which must come within so many seconds."""
        line = self._line(seconds)
        try:
            answer: dict[str, Any] = json.loads(line)
        except ValueError:
            raise NotMeasured(f"answered {line[:200]!r}") from None
        if why := answer.get("error"):
            raise NotMeasured(why)
        return answer

    def stop(self) -> None:
        """The end of its input ends it, and a signal to its pid if that does not."""
        self.process.stdin.close()
        for gently in (signal.SIGTERM, signal.SIGKILL):
            try:
                self.process.wait(self.stop_seconds)
                break
            except subprocess.TimeoutExpired:
                self.process.send_signal(gently)
        self.process.wait()
        self.process.stdout.close()

    def _line(self, seconds: float) -> bytes:
        out, deadline = self.process.stdout, time.monotonic() + seconds
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
