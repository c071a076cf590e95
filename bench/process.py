"""The servers under test: started on free ports, watched, and ended by their process id."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import paths

READY_TIMEOUT = 60.0
STOP_TIMEOUT = 30.0
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


class Server:
    """A running server; `address` maps `data`, `meta`, `http` to HOST:PORT as its ready line says."""

    def __init__(self, command: list[str], name: str, log: Path) -> None:
        self.name, self.log = name, log
        # A setting of the caller's shell must not change what is measured.
        environment = {key: value for key, value in os.environ.items() if not key.startswith("LONGBOW_")}
        with log.open("wb") as errors:
            self.process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=errors,
                stdin=subprocess.DEVNULL,
                env=environment,
                text=True,
            )
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        try:
            self.address = self._wait_ready()
        except BaseException:
            self.stop()
            raise

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _wait_ready(self) -> dict[str, str]:
        while True:
            try:
                line = self._lines.get(timeout=READY_TIMEOUT)
            except queue.Empty:
                raise RuntimeError(f"{self.name} did not say ready in {READY_TIMEOUT:.0f} s") from None
            if line is None:
                tail = self.log.read_text(errors="replace")[-2000:]
                raise RuntimeError(f"{self.name} ended before it was ready:\n{tail}")
            if line.startswith(f"{self.name} ready "):
                return dict(part.split("=", 1) for part in line.split()[2:] if "=" in part)

    @property
    def data_uri(self) -> str:
        """The data server."""
        return f"grpc://{self.address['data']}"

    @property
    def meta_uri(self) -> str:
        """The meta server; a bare server has one port for all."""
        return f"grpc://{self.address.get('meta', self.address['data'])}"

    def cpu_seconds(self) -> float:
        """CPU time used so far, of all its threads."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS

    def cpu_by_thread(self) -> dict[str, float]:
        """CPU seconds used so far by the threads that run, added up by their names."""
        used: defaultdict[str, float] = defaultdict(float)
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            try:
                head, tail = (task / "stat").read_text().rsplit(")", 1)
            except FileNotFoundError:
                continue  # It ended between the listing and now.
            fields = tail.split()
            name = head.split("(", 1)[1].rstrip("0123456789").rstrip("-")
            used[name] += (int(fields[11]) + int(fields[12])) / CLOCK_TICKS
        return used

    def stop(self) -> None:
        """Asks it to end, and kills it if it does not."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


@contextmanager
def longbow(binary: Path, parent: Path) -> Iterator[Server]:
    """Longbow with its defaults, on free ports and in a new folder under `parent` that is removed afterwards."""
    if not binary.exists():
        raise SystemExit(f"{binary} is not there: build it with `cargo build --release`, or pass --binary")
    with TemporaryDirectory(prefix="longbow-bench-", dir=parent) as folder:
        command = [str(binary), "serve"]
        for flag in ("--listen-addr", "--meta-addr", "--metrics-addr"):
            command += [flag, "127.0.0.1:0"]
        command += ["--data-path", str(Path(folder) / "data")]
        server = Server(command, "longbow", Path(folder) / "server.log")
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def bare(parent: Path) -> Iterator[Server]:
    """The bare Flight server in a process of its own."""
    with TemporaryDirectory(prefix="bare-bench-", dir=parent) as folder:
        command = [sys.executable, str(paths.BENCH / "bare_server.py")]
        server = Server(command, "bare", Path(folder) / "server.log")
        try:
            yield server
        finally:
            server.stop()
