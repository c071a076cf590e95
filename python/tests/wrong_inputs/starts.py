"""Starts of the server that must fail: what is said, the exit code, and that nothing is touched."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from server import binary

LOCK = "LOCK"


def refused_start(*arguments: str, variables: dict[str, str] | None = None) -> tuple[int, str]:
    """Runs the program to its end; exit code and the last line that it said."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("LONGBOW_")}
    ended = subprocess.run(
        [str(binary()), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        env={**clean, **(variables or {})},
    )
    assert ended.stdout == "", "a server that does not start is never ready"
    return ended.returncode, ended.stderr


def serve(path: Path, *arguments: str, variables: dict[str, str] | None = None) -> tuple[int, str]:
    """As :func:`refused_start`, for a server on free ports with this data folder."""
    ports = []
    for name in ("listen", "meta", "metrics"):
        if f"--{name}-addr" not in arguments:
            ports += [f"--{name}-addr", "127.0.0.1:0"]
    return refused_start("serve", "--data-path", str(path), *ports, *arguments, variables=variables)


def contents(path: Path) -> dict[str, bytes]:
    """Every file of a folder with its bytes, but for the lock, which names its last holder, and
    files that are written ahead for the log, which hold nothing."""
    files = (
        file
        for file in sorted(path.rglob("*"))
        if file.is_file() and file.name != LOCK and file.suffix != ".spare"
    )
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


def crc32c(data: bytes) -> int:
    """The checksum of everything on disk (Castagnoli; RFC 3720, B.4), bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF
