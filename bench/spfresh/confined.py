"""Memory of a process as the system accounts for it: what it may take, page cache included, and what it takes."""

from __future__ import annotations

import os
import resource
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup/memory")
CACHES = Path("/proc/sys/vm/drop_caches")


def drop_caches() -> None:
    """Has the system forget the files that it read, if it may be told to."""
    if os.access(CACHES, os.W_OK):
        os.sync()
        CACHES.write_text("3")


def confine(limit: int) -> bool:
    """Lets this process take so many bytes more from now on, pages of files that it reads included; whether that could be.

    It takes a memory controller of the first kind and the right to use it. What was taken before does not count.
    """
    group = GROUPS / f"longbow-bench-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(limit))
        (group / "cgroup.procs").write_text(str(os.getpid()))
    except OSError:
        return False
    return True


def release(process: int) -> None:
    """Removes the group of a process that has ended."""
    group = GROUPS / f"longbow-bench-{process}"
    if group.exists():
        group.rmdir()


def charged_mb() -> float | None:
    """Megabytes that the group of this process is charged with."""
    told = GROUPS / f"longbow-bench-{os.getpid()}" / "memory.usage_in_bytes"
    return int(told.read_text()) / 2**20 if told.exists() else None


def resident_mb() -> dict[str, float]:
    """Megabytes of this process: its own, and pages of files that are mapped in."""
    lines = Path("/proc/self/status").read_text().splitlines()
    told = dict(line.split(":", 1) for line in lines if ":" in line)
    return {
        name: int(told[key].split()[0]) / 1024
        for name, key in (("anonymous_mb", "RssAnon"), ("mapped_mb", "RssFile"))
    }


def reads() -> tuple[int, int]:
    """Bytes that this process had read from the disk so far, and how often it waited for a page."""
    lines = Path("/proc/self/io").read_text().splitlines()
    told = dict(line.split(": ", 1) for line in lines)
    return int(told["read_bytes"]), resource.getrusage(resource.RUSAGE_SELF).ru_majflt
