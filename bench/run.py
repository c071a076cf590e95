#!/usr/bin/env python3
"""All benchmarks in one run: Longbow beside a bare Flight server, the raw disk and hnswlib.

    .venv/bin/python bench/run.py [--quick] [--json FILE] [--only transfer,disk]

Prints tables and then the report as JSON. Exit code 1 if rows that were acknowledged were not found.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import build
import disk
import freshness
import latency
import machine
import paths
import table
import transfer
from process import bare, longbow

SECTIONS = ("transfer", "disk", "tiny", "search", "build", "freshness")
INDEX_TIMEOUT = 1800.0


@dataclass(frozen=True)
class Size:
    """How much a run does."""

    rounds: int
    transfer_rows: list[int]
    disk_bytes: int
    disk_rounds: int
    search_rows: int
    queries: int
    build_rows: int
    build_rounds: int
    checks: int


FULL = Size(5, [100_000, 1_000_000], 2 << 30, 5, 100_000, 2000, 100_000, 5, 10_000)
QUICK = Size(5, [100_000], 1 << 30, 1, 20_000, 1000, 20_000, 1, 2_000)


def run_section(name: str, size: Size, binary: Path, folder: Path) -> dict[str, Any]:
    """One section, with servers of its own."""
    with longbow(binary, folder) as ours:
        if name == "transfer":
            with bare(folder) as peer:
                return transfer.measure(ours, peer, size.transfer_rows, size.rounds, INDEX_TIMEOUT)
        if name == "disk":
            with bare(folder) as peer:
                return disk.measure(ours, peer, folder, size.disk_bytes, size.disk_rounds)
        if name == "tiny":
            with bare(folder) as peer:
                return latency.tiny(ours, peer, size.rounds, 500)
        alone: dict[str, Callable[[], dict[str, Any]]] = {
            "search": lambda: latency.search(ours, size.search_rows, size.queries, INDEX_TIMEOUT),
            "build": lambda: build.measure(ours, size.build_rows, size.build_rounds, 1000, INDEX_TIMEOUT),
            "freshness": lambda: freshness.measure(ours, size.checks),
        }
        return alone[name]()


def sections(text: str) -> list[str]:
    """The names of `--only`, checked."""
    names = text.split(",")
    if unknown := [name for name in names if name not in SECTIONS]:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    return names


def main() -> int:
    """Runs the sections and prints the report."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument(
        "--quick", action="store_true", help="smaller sizes: a few minutes, rougher figures"
    )
    arguments.add_argument("--json", type=Path, metavar="FILE", help="also write the report to FILE")
    arguments.add_argument(
        "--only", type=sections, default=list(SECTIONS), metavar="A,B", help=", ".join(SECTIONS)
    )
    arguments.add_argument("--binary", type=Path, default=paths.BINARY, help="default %(default)s")
    arguments.add_argument(
        "--dir",
        type=Path,
        default=Path(tempfile.gettempdir()),
        help="data and disk files; a real disk, not tmpfs",
    )
    args = arguments.parse_args()
    report: dict[str, Any] = {
        "machine": machine.describe(args.dir),
        "mode": "quick" if args.quick else "full",
    }
    report["sections"] = measured = {}
    size = QUICK if args.quick else FULL
    for name in args.only:
        print(f"{name} ...", file=sys.stderr, flush=True)
        measured[name] = run_section(name, size, args.binary, args.dir)
    report["load_after"] = round(os.getloadavg()[0], 2)
    print(table.render(report))
    print()
    print(json.dumps(report, indent=2))
    if args.json:
        args.json.write_text(json.dumps(report, indent=2) + "\n")
    return 1 if "freshness" in measured and freshness.broken(measured["freshness"]) else 0


if __name__ == "__main__":
    sys.exit(main())
