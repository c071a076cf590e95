"""The disk itself: what one thread reaches that writes all callers' entries at once and syncs, with nothing around it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from case import ENTRY_BYTES, Case, Figures, Peer, Window, figures

NAME = "raw-disk"
POLICIES = {NAME: "one thread: pwrite of callers x rows KB into a zero-written file, then fdatasync"}
FILE_BYTES = 256 << 20


@contextmanager
def peers(folder: Path) -> Iterator[list[Peer]]:
    """The file is zero-written and synced first, so that a sync has no blocks to allocate and no size to change."""
    file = folder / "raw"
    descriptor = os.open(file, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        zeros = bytes(1 << 20)
        for offset in range(0, FILE_BYTES, len(zeros)):
            _write(descriptor, zeros, offset)
        os.fsync(descriptor)
        yield [Peer(NAME, POLICIES[NAME], lambda case, window: measure(descriptor, case, window))]
    finally:
        os.close(descriptor)
        file.unlink()


def measure(descriptor: int, case: Case, window: Window) -> Figures:
    """Each write follows the one before it, and begins at the file's start again at its end."""
    rows = case.callers * case.rows
    block = os.urandom(rows * ENTRY_BYTES)
    if len(block) > FILE_BYTES:
        raise ValueError(f"{rows} rows at once are more than the file of {FILE_BYTES} bytes")
    taken: list[int] = []
    offset = 0
    begin = time.perf_counter_ns() + int(window.warmup * 1e9)
    end = begin + int(window.seconds * 1e9)
    while True:
        start = time.perf_counter_ns()
        _write(descriptor, block, offset)
        os.fdatasync(descriptor)
        now = time.perf_counter_ns()
        if now >= end:
            return figures(np.array(taken) / 1e3, rows, window.seconds)
        if now >= begin:
            taken.append(now - start)
        offset += len(block)
        if offset + len(block) > FILE_BYTES:
            offset = 0


def _write(descriptor: int, block: bytes, offset: int) -> None:
    pending = memoryview(block)
    while pending:
        count = os.pwrite(descriptor, pending, offset)
        pending, offset = pending[count:], offset + count
