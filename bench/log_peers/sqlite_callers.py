#!/usr/bin/env python3
"""Callers that commit rows to one SQLite database, in a process of their own.

    sqlite_callers.py DATABASE OUT CALLERS ROWS WARMUP SECONDS ENTRY_BYTES

Writes the microseconds of every commit that ended within the window to OUT, as 64-bit integers.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
import time
from array import array
from collections import deque
from pathlib import Path


class Turns:
    """A lock that is handed on in the order of asking; a plain one lets whoever just had it take it again."""

    def __init__(self) -> None:
        self.guard = threading.Lock()
        self.waiting: deque[threading.Lock] = deque()
        self.taken = False

    def __enter__(self) -> None:
        with self.guard:
            if not self.taken:
                self.taken = True
                return
            turn = threading.Lock()
            turn.acquire()
            self.waiting.append(turn)
        turn.acquire()

    def __exit__(self, *_: object) -> None:
        with self.guard:
            if self.waiting:
                self.waiting.popleft().release()
            else:
                self.taken = False


def connect(database: Path) -> sqlite3.Connection:
    """A new database whose commits are on disk before they return."""
    connection = sqlite3.connect(database, isolation_level=None, check_same_thread=False)
    mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
    connection.execute("PRAGMA synchronous=FULL")
    if (mode, connection.execute("PRAGMA synchronous").fetchone()[0]) != ("wal", 2):
        raise SystemExit(f"{database}: journal_mode is {mode}, not wal with synchronous=FULL")
    connection.execute("CREATE TABLE entries (lsn INTEGER PRIMARY KEY, payload BLOB NOT NULL)")
    return connection


class Load:
    """The callers: threads of this process that take turns at one connection."""

    def __init__(
        self, connection: sqlite3.Connection, rows: int, entry_bytes: int, begin: float, end: float
    ) -> None:
        self.connection, self.rows, self.begin, self.end = connection, rows, begin, end
        self.entry_bytes = entry_bytes
        self.turns = Turns()
        self.taken = array("q")
        self.failure: BaseException | None = None

    def caller(self) -> None:
        """Commits until the window is over."""
        payloads = [(os.urandom(self.entry_bytes),) for _ in range(self.rows)]
        try:
            while True:
                start = time.perf_counter()
                with self.turns:
                    self.commit(payloads)
                    now = time.perf_counter()
                    if self.begin <= now < self.end:
                        self.taken.append(int((now - start) * 1e6))
                if now >= self.end or self.failure:
                    return
        except sqlite3.Error as error:
            self.failure = error

    def commit(self, payloads: list[tuple[bytes]]) -> None:
        """One transaction."""
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.executemany("INSERT INTO entries (payload) VALUES (?)", payloads)
        self.connection.execute("COMMIT")


def main() -> int:
    """Runs the callers and writes what they took."""
    database, out = Path(sys.argv[1]), Path(sys.argv[2])
    callers, rows = int(sys.argv[3]), int(sys.argv[4])
    begin = time.perf_counter() + float(sys.argv[5])
    load = Load(connect(database), rows, int(sys.argv[7]), begin, begin + float(sys.argv[6]))
    threads = [threading.Thread(target=load.caller) for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    load.connection.close()
    if load.failure:
        raise SystemExit(f"a caller failed: {load.failure}")
    with out.open("wb") as file:
        load.taken.tofile(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
