"""A real server for the tests: its own process, free ports, a folder of its own."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def binary() -> Path:
    """``$LONGBOW_BIN``, or the release build of this repository."""
    if "LONGBOW_BIN" in os.environ:
        return Path(os.environ["LONGBOW_BIN"])
    target = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))
    return target / "release" / "longbow"


class Server:
    """A running ``longbow serve``; ``data``, ``meta`` and ``http`` are addresses."""

    def __init__(self, path: Path, *arguments: str) -> None:
        program = binary()
        if not program.is_file():
            raise FileNotFoundError(f"{program}: build it with `cargo build --release -p longbow`")
        self.path, self._arguments = path, arguments
        command = [str(program), "serve", "--data-path", str(path)]
        command += ["--backup-path", str(path.parent / f"{path.name}-backups"), *arguments]
        for name in ("listen", "meta", "metrics"):
            command += [f"--{name}-addr", "127.0.0.1:0"]
        # Settings of the machine's own must not leak into a test.
        clean = {k: v for k, v in os.environ.items() if not k.startswith("LONGBOW_")}
        self._log = open(path.parent / f"{path.name}.log", "a+")
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self._log, text=True, env=clean
        )
        told = self._ready()
        self.data, self.meta, self.http = told["data"], told["meta"], told["http"]

    def _ready(self) -> dict[str, str]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("longbow ready "):
                return dict(word.split("=", 1) for word in line.split()[2:])
        self._process.wait()
        self._log.seek(0)
        raise RuntimeError(f"the server ended with {self._process.returncode}: {self._log.read()}")

    @property
    def uri(self) -> str:
        return f"grpc://{self.data}"

    @property
    def meta_uri(self) -> str:
        return f"grpc://{self.meta}"

    def kill(self) -> None:
        """``kill -9``: no chance to say goodbye."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Asks it to end, and waits; its exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> int:
        if self._process.poll() is None:
            self._process.send_signal(how)
        code = self._process.wait(timeout=60)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._log.close()
        return code
