"""A server process that is started on one folder over and over, with small limits so that everything happens often."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def binary() -> Path:
    """``$LONGBOW_BIN``, or the release build of this repository."""
    if "LONGBOW_BIN" in os.environ:
        return Path(os.environ["LONGBOW_BIN"])
    target = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))
    return target / "release" / "longbow"


def settings(rng: random.Random, index: str) -> list[str]:
    """Flags of one start: either sync mode, and limits that make sealing, compaction and checkpoints frequent."""
    chosen = {
        "storage-async-fsync": rng.choice(["true", "false"]),
        "wal-segment-size": rng.choice(["64KiB", "64KiB", "512KiB"]),
        "max-wal-size": rng.choice(["1MiB", "1MiB", "4MiB"]),
        "storage-segment-size": rng.choice(["64KiB", "256KiB"]),
        "snapshot-interval": rng.choice(["0", "200ms", "1s"]),
        "compact-interval": "100ms",
        "doput-batch-size": rng.choice(["1", "100"]),
        "vector-index": index,
        "hnsw-m": "8",
        "hnsw-ef-construction": "40",
        "log-level": "info",
        "log-format": "json",
    }
    return [part for key, value in chosen.items() for part in (f"--{key}", value)]


class Server:
    """A running ``longbow serve``."""

    def __init__(self, folder: Path, flags: list[str]) -> None:
        command = [str(binary()), "serve", "--data-path", str(folder / "data"), *flags]
        for name in ("listen", "meta", "metrics"):
            command += [f"--{name}-addr", "127.0.0.1:0"]
        clean = {k: v for k, v in os.environ.items() if not k.startswith("LONGBOW_")}
        self._log = open(folder / "server.log", "a+")
        self._log_begins = self._log.tell()
        self.started = time.monotonic()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._log, text=True, env=clean)

    def wait(self) -> dict[str, str]:
        """Waits until the server is ready; its addresses."""
        for line in self.process.stdout:
            if line.startswith("longbow ready "):
                return dict(word.split("=", 1) for word in line.split()[2:])
        raise RuntimeError(f"the server ended with {self.process.wait()} and was never ready")

    def complaints(self) -> list[str]:
        """What the server logged that a healthy one never logs: errors and panics."""
        self._log.seek(self._log_begins)
        bad = ('"level":"ERROR"', "panicked at")
        return [line.strip()[:500] for line in self._log if any(word in line for word in bad)]

    def end(self, how: signal.Signals = signal.SIGKILL) -> int:
        """Sends a signal and waits for the end; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        code = self.process.wait(timeout=60)
        self.process.stdout.close()
        self._log.close()
        return code
