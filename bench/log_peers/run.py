#!/usr/bin/env python3
"""Durable appends of 1 KB to Longbow's log beside PostgreSQL, Kafka, SQLite and the raw disk, in one run.

    .venv/bin/python bench/log_peers/run.py [--quick] [--json FILE] [--only longbow,postgresql] [--dir DIR]

Prints a table for each case and then the report as JSON. A system that cannot be had here is `not measured`, and why.
Exit code 1 if Longbow itself was not measured.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import bench_path  # noqa: F401  (makes the modules of bench/ importable)
import kafka
import longbow_log
import machine
import paths
import postgres
import raw_disk
import report
import sqlite
from case import PIPELINED, Case, Figures, NotMeasured, Peer, Window

Opener = Callable[[Path], AbstractContextManager[list[Peer]]]

CALLERS = [1, 10, 100]
ROWS = [1, 100]
PIPELINE = Case(1, 1000, PIPELINED)


def systems(binary: Path) -> list[tuple[dict[str, str], Opener]]:
    """The policies under their systems' names, and how to get at these systems."""
    return [
        (raw_disk.POLICIES, raw_disk.peers),
        (longbow_log.POLICIES, partial(longbow_log.peers, binary=binary)),
        (postgres.POLICIES, postgres.peers),
        (kafka.POLICIES, kafka.peers),
        (sqlite.POLICIES, sqlite.peers),
    ]


def open_all(stack: ExitStack, binary: Path, folder: Path, only: list[str] | None) -> list[Peer]:
    """Starts what is to be measured; what cannot be started says why in each of its rows."""
    found: list[Peer] = []
    for policies, opener in systems(binary):
        wanted = [name for name in policies if only is None or name in only]
        if not wanted:
            continue
        print(f"starting {', '.join(wanted)} ...", file=sys.stderr, flush=True)
        try:
            found += [peer for peer in stack.enter_context(opener(folder)) if peer.name in wanted]
        except NotMeasured as why:
            found += [Peer(name, policies[name], partial(_missing, str(why))) for name in wanted]
    return found


def _missing(why: str, _case: Case, _window: Window) -> Figures:
    raise NotMeasured(why)


def measure(peers: list[Peer], cases: list[Case], window: Window, rounds: int) -> list[report.Rounds]:
    """Each round measures each case with all systems one after another; each round begins with another system."""
    results = {(case, peer.name): report.Rounds(peer, case) for case in cases for peer in peers}
    for number in range(rounds):
        first = number % len(peers)
        for case in cases:
            print(f"round {number + 1} of {rounds}: {case.title} ...", file=sys.stderr, flush=True)
            for peer in peers[first:] + peers[:first]:
                result = results[case, peer.name]
                if result.not_measured is not None:
                    continue
                os.sync()  # What the one before left to be written is not paid for by this one.
                try:
                    result.figures.append(peer.measure(case, window))
                except NotMeasured as why:
                    result.not_measured = str(why)
    return list(results.values())


def arguments() -> argparse.Namespace:
    """The command line."""
    names = [name for policies, _ in systems(paths.BINARY) for name in policies]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one round of 2 s: a few minutes, rough figures")
    parser.add_argument("--rounds", type=_positive(int), help="default 5")
    parser.add_argument("--seconds", type=_positive(float), help="of each measurement, default 5")
    parser.add_argument("--warmup", type=_positive(float), help="seconds before each measurement, default 2")
    parser.add_argument(
        "--callers", type=_numbers, default=CALLERS, metavar="1,10,100", help="at the same time"
    )
    parser.add_argument("--rows", type=_numbers, default=ROWS, metavar="1,100", help="rows a commit")
    parser.add_argument("--blocking-only", action="store_true", help="leave the pipelined case out")
    parser.add_argument("--only", type=partial(_names, names), metavar="A,B", help=", ".join(names))
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the report to FILE")
    parser.add_argument("--binary", type=Path, default=paths.BINARY, help="default %(default)s")
    folder = Path(tempfile.gettempdir())
    parser.add_argument(
        "--dir", type=Path, default=folder, help="on the disk to measure; default %(default)s"
    )
    args = parser.parse_args()
    for name, full, quick in (("rounds", 5, 1), ("seconds", 5.0, 2.0), ("warmup", 2.0, 1.0)):
        if getattr(args, name) is None:
            setattr(args, name, quick if args.quick else full)
    if not args.dir.is_dir():
        parser.error(f"--dir: {args.dir} is not a folder")
    return args


def _positive(kind: type[int | float]) -> Callable[[str], int | float]:
    def parse(text: str) -> int | float:
        value = kind(text)
        if not value > 0:
            raise argparse.ArgumentTypeError(f"{text} is not above 0")
        return value

    parse.__name__ = kind.__name__
    return parse


def _numbers(text: str) -> list[int]:
    parts = text.split(",")
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise argparse.ArgumentTypeError(f"{text} is not numbers above 0 with commas between them")
    return [int(part) for part in parts]


def _names(known: list[str], text: str) -> list[str]:
    """The systems of `--only`, checked."""
    names = text.split(",")
    if unknown := [name for name in names if name not in known]:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
    return names


def main() -> int:
    """Starts the systems, measures them, and prints the report."""
    args = arguments()
    # Ending this must end the servers too, and remove their folders.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    out: dict[str, Any] = {"machine": machine.describe(args.dir)}
    if "tmpfs" in out["machine"]["file_system"]:
        raise SystemExit(
            f"{args.dir} is on tmpfs, where nothing is durable: name a folder on a disk with --dir"
        )
    out |= {name: getattr(args, name) for name in ("rounds", "seconds", "warmup")}
    cases = [Case(callers, rows) for callers in args.callers for rows in args.rows]
    cases += [] if args.blocking_only else [PIPELINE]
    with tempfile.TemporaryDirectory(prefix="log-peers-", dir=args.dir) as folder, ExitStack() as stack:
        os.chmod(folder, 0o755)  # PostgreSQL's user must come through.
        peers = open_all(stack, args.binary, Path(folder), args.only)
        results = measure(peers, cases, Window(args.warmup, args.seconds), args.rounds)
    out["rows"] = report.rows(results)
    out["load_after"] = round(os.getloadavg()[0], 2)
    print(report.render(out))
    print()
    print(json.dumps(out, indent=2))
    if args.json:
        args.json.write_text(json.dumps(out, indent=2) + "\n")
    longbow = [row for row in out["rows"] if row["system"] == longbow_log.NAME]
    return 1 if any("not_measured" in row for row in longbow) else 0


if __name__ == "__main__":
    sys.exit(main())
