"""The demo's own Longbow server: on free ports, stopped or killed by its process id alone."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
READY = "longbow ready "
START_SECONDS = 60
STOP_SECONDS = 30


class ServerFault(Exception):
    """The server did not do as it should; the message says what it said last."""


def binary() -> Path:
    """The program: `LONGBOW_BIN`, or the one that cargo built."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    path = Path(os.environ.get("LONGBOW_BIN", target / "release" / "longbow"))
    if not path.is_file():
        raise ServerFault(f"no program at {path}: build it with `cargo build --release`")
    return path


class Server:
    """One run of `longbow serve` on a folder; a second run may be started on the same folder."""

    def __init__(self, data: Path, log: Path) -> None:
        loopback = "127.0.0.1:0"
        command = [str(binary()), "serve", "--data-path", str(data)]
        command += ["--listen-addr", loopback, "--meta-addr", loopback, "--metrics-addr", loopback]
        self._log = log
        began = time.monotonic()
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL, text=True
            )
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        try:
            self.addresses = self._wait_ready(began + START_SECONDS)
        except BaseException:
            self.destroy()
            raise
        self.seconds_to_ready = time.monotonic() - began

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def _read(self) -> None:
        # All of it is read, so that the server never waits for a full pipe.
        for line in self._process.stdout or ():
            self._lines.put(line)
        self._lines.put(None)

    def _wait_ready(self, deadline: float) -> dict[str, str]:
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise ServerFault(
                    f"not ready after {START_SECONDS} s. {self.last_words()}"
                ) from None
            if line is None:
                raise ServerFault(f"ended before it was ready. {self.last_words()}")
            if line.startswith(READY):
                return dict(
                    word.split("=", 1) for word in line[len(READY) :].split() if "=" in word
                )

    def last_words(self) -> str:
        """The end of its log, for a message."""
        text = self._log.read_text(encoding="utf-8", errors="replace").strip()
        return (
            "Its log ends:\n" + "\n".join(text.splitlines()[-8:]) if text else "Its log is empty."
        )

    def kill(self) -> int:
        """SIGKILL, which no program can catch; the signal it died of."""
        self._process.send_signal(signal.SIGKILL)
        return -self._process.wait()

    def stop(self) -> float:
        """SIGTERM, and an orderly end is expected; how many seconds it took."""
        began = time.monotonic()
        self._process.terminate()
        try:
            code = self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            raise ServerFault(f"still running {STOP_SECONDS} s after SIGTERM") from None
        if code != 0:
            raise ServerFault(f"ended with {code} on SIGTERM. {self.last_words()}")
        return time.monotonic() - began

    def destroy(self) -> None:
        """Makes sure that nothing is left running, whatever happened."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
