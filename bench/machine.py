"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import paths


def describe(folder: Path) -> dict[str, Any]:
    """CPU, memory, kernel, file system of `folder`, versions, and the load before the run."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": _commit(),
        "cpu": _field("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_mb": _memory_mb(),
        "kernel": f"{platform.system()} {platform.release()}",
        "file_system": _file_system(folder),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in ("pyarrow", "numpy", "hnswlib")},
        "load_before": round(os.getloadavg()[0], 2),
    }


def _field(file: str, name: str) -> str | None:
    for line in Path(file).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None


def _memory_mb() -> int:
    return int((_field("/proc/meminfo", "MemTotal") or "0 kB").split()[0]) // 1000


def _file_system(folder: Path) -> str:
    best = ("", "unknown")
    resolved = str(folder.resolve())
    for line in Path("/proc/mounts").read_text().splitlines():
        device, mount, kind, *_ = line.split()
        inside = resolved == mount or resolved.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best[0]):
            best = (mount, f"{kind} on {device}")
    return best[1]


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _commit() -> str | None:
    done = subprocess.run(
        ["git", "-C", str(paths.REPO), "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or None
