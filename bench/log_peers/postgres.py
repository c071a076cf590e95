"""PostgreSQL: a cluster of its own, loaded by pgbench over a unix socket; each commit inserts one row or many.

The table has no key and no index, the least that an append can cost there. WAL segments are made beforehand and
recycled by a checkpoint before each measurement, as in a server that has run for a while.
"""

from __future__ import annotations

import os
import pwd
import re
import secrets
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from case import (
    BLOCKING,
    ENTRY_BYTES,
    Case,
    Figures,
    NotMeasured,
    Peer,
    Window,
    figures,
)
from child import Server, apt_install, run

NAME = "postgresql"
POLICIES = {
    NAME: "synchronous_commit=on, fsync=on, wal_sync_method=fdatasync: the WAL is synced before COMMIT returns; "
    "commits that wait at the same time share a sync"
}
USER = "postgres"
# What the policy promises, asked of the running server before anything is measured.
PROMISED = {
    "synchronous_commit": "on",
    "fsync": "on",
    "full_page_writes": "on",
    "wal_sync_method": "fdatasync",
    "commit_delay": "0",
}
WAL_BYTES = 512 << 20
SETTINGS = {
    **PROMISED,
    "listen_addresses": "",
    "max_connections": "200",
    "shared_buffers": "1GB",
    # Recycled segments are kept for all rounds, and no checkpoint falls into a measurement.
    "min_wal_size": f"{WAL_BYTES >> 20}MB",
    "max_wal_size": "16GB",
    "checkpoint_timeout": "1h",
}
# A server that no one asked for must not be made and started by the installation.
NO_MAIN_CLUSTER = Path("/etc/postgresql-common/createcluster.d/longbow-bench.conf")


@contextmanager
def peers(folder: Path) -> Iterator[list[Peer]]:
    """Installs PostgreSQL if it is missing, and runs a cluster in `folder`."""
    programs = _programs()
    user = USER if os.geteuid() == 0 else None
    # The path of a unix socket may have about 100 bytes, which `folder` may have already.
    with (
        TemporaryDirectory(prefix="postgres-", dir=folder) as place,
        TemporaryDirectory(prefix="pg-") as sockets,
    ):
        _hand_over([Path(place), Path(sockets)], user)
        data = Path(place) / "data"
        initdb = [programs / "initdb", "-D", data, "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C"]
        run(initdb, 120, user)
        command = [programs / "postgres", "-D", data, "-k", sockets]
        for name, value in SETTINGS.items():
            command += ["-c", f"{name}={value}"]
        server = Server(command, folder / "postgres.log", user)
        try:
            cluster = Cluster(programs, sockets)
            server.wait_ready(cluster.is_ready, 60)
            cluster.prepare()
            yield [Peer(NAME, POLICIES[NAME], cluster.measure)]
        finally:
            server.stop(signal.SIGINT)  # The fast shutdown: it does not wait for clients.


@dataclass(frozen=True)
class Cluster:
    """A running cluster."""

    programs: Path
    sockets: str

    def sql(self, *statements: str) -> str:
        """The answer of the last of them, each a transaction of its own."""
        command = [self.programs / "psql", "-h", self.sockets, "-U", USER, "-d", "postgres", "-XAtq"]
        command += ["-v", "ON_ERROR_STOP=1"]
        for statement in statements:
            command += ["-c", statement]
        return run(command, 300).strip()

    def is_ready(self) -> bool:
        """Whether it answers."""
        try:
            return self.sql("SELECT 1") == "1"
        except NotMeasured:
            return False

    def prepare(self) -> None:
        """The table, as many WAL segments as a measurement fills, and a check that the policy is in force."""
        for name, value in PROMISED.items():
            if (real := self.sql(f"SHOW {name}")) != value:
                raise NotMeasured(f"{name} is {real}, not {value}")
        self.sql(
            "CREATE TABLE entries (payload text NOT NULL)",
            "ALTER TABLE entries ALTER COLUMN payload SET STORAGE EXTERNAL",
            f"INSERT INTO entries SELECT repeat('x', {ENTRY_BYTES}) FROM generate_series(1, {WAL_BYTES >> 10})",
        )

    def measure(self, case: Case, window: Window) -> Figures:
        """One run of pgbench; the payload goes over the socket as a parameter, once a row."""
        if case.mode != BLOCKING:
            raise NotMeasured("pgbench waits for each commit")
        self.sql("TRUNCATE entries", "CHECKPOINT")
        with TemporaryDirectory(prefix="pgbench-", dir=_scratch()) as place:
            script = Path(place) / "insert.sql"
            script.write_text(f"INSERT INTO entries VALUES {', '.join(['(:payload)'] * case.rows)};\n")
            seconds = int(np.ceil(window.warmup + window.seconds + 0.5))
            command = [self.programs / "pgbench", "-h", self.sockets, "-U", USER, "-n", "-M", "prepared"]
            command += ["-c", str(case.callers), "-j", str(min(case.callers, 2)), "-T", str(seconds)]
            command += ["-D", f"payload={_payload()}", "-f", script]
            command += ["--log", "--log-prefix", Path(place) / "log", "postgres"]
            run(command, window.timeout)
            log = np.concatenate([np.loadtxt(file, ndmin=2) for file in Path(place).glob("log.*")])
        return in_window(log, case.rows, window)


def in_window(log: np.ndarray, rows: int, window: Window) -> Figures:
    """Of pgbench's log, a line a transaction: client, number, microseconds taken, script, seconds and microseconds of
    its end. The clock starts when the first transaction began."""
    taken = log[:, 2]
    ended = log[:, 4] + log[:, 5] / 1e6
    begin = (ended - taken / 1e6).min() + window.warmup
    inside = (ended >= begin) & (ended < begin + window.seconds)
    return figures(taken[inside], rows, window.seconds)


def _payload() -> str:
    """1 KB that stays 1 KB as text, and does not look like a number to pgbench."""
    return "x" + secrets.token_urlsafe(ENTRY_BYTES)[: ENTRY_BYTES - 1]


def _scratch() -> Path | None:
    """Where pgbench's log does not go to the measured disk."""
    memory = Path("/dev/shm")
    return memory if os.access(memory, os.W_OK) else None


def _programs() -> Path:
    """The folder of the newest installed version, after installing one if there is none."""
    if _newest() is None:
        _install()
    if found := _newest():
        return found
    raise NotMeasured("the package postgresql has no initdb with pgbench under /usr/lib/postgresql")


def _install() -> None:
    """Installs the package without the cluster that it would make and start."""
    settings = NO_MAIN_CLUSTER.parent
    mine = os.geteuid() == 0 and not settings.exists()
    if os.geteuid() == 0:
        settings.mkdir(parents=True, exist_ok=True)
        NO_MAIN_CLUSTER.write_text("create_main_cluster = false\n")
    try:
        apt_install("postgresql")
    finally:
        NO_MAIN_CLUSTER.unlink(missing_ok=True)
        if mine and not any(settings.iterdir()):
            settings.rmdir()


def _newest() -> Path | None:
    """Debian keeps each version's programs apart, outside of PATH."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    found = [path for path in found if (path / "pgbench").exists()]
    return max(found, key=lambda path: int(re.sub(r"\D", "", path.parent.name) or 0), default=None)


def _hand_over(folders: list[Path], user: str | None) -> None:
    """PostgreSQL refuses to run as root, so its user gets these folders and must be able to come to them."""
    if user is None:
        return
    try:
        known = pwd.getpwnam(user)
    except KeyError:
        raise NotMeasured(f"there is no user {user}, and PostgreSQL refuses to run as root") from None
    for folder in folders:
        os.chown(folder, known.pw_uid, known.pw_gid)
        try:
            run(["test", "-w", folder], 10, user)
        except NotMeasured:
            raise NotMeasured(f"user {user} may not enter {folder}: name a --dir open to all") from None
