"""Longbow beside the databases that a user would pick instead, in their own processes, on the same rows, in one run.

Each is built alone, one after the other. Then, in each round, each of them makes a pass over the queries at each breadth of
its search, one query a call from one thread, and all in one call where there is such a call; each round begins with
another system. At last, each one's rows are replaced and deleted, with passes right after. With `--filters`, rows have
attributes, and the passes are under each filter instead. What cannot be had is `not measured`, and why. Exit code 1 if
Longbow itself, or a set, was not measured.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent), str(HERE.parent / "ann"), str(HERE.parent / "filtered")]

import attributes
import data
import database_report
import environments
import filtered_report
import filtered_stage
import filters
import flags
import machine
import paths
import peers
import stages
from database_report import Measured
from running import BUILD_TIMEOUT, REST_SECONDS, TIMES, Running, in_turns

DEFAULT_SETS = "fashion-mnist,wordnet-minilm"
#: No more effort than finds this.
ENOUGH = 0.995


def one_round(running: Running) -> None:
    """A pass at each breadth, up to where enough is found."""
    points = []
    for effort in running.measured.built["sweep"]:
        point = running.ask("pass", effort=effort, **TIMES)
        point["qps_many"] = running.ask("many", effort=effort)["qps_many"]
        points.append(point)
        if point["recall"] >= ENOUGH:
            break
    running.measured.rounds.append(points)


def around(points: list[dict[str, Any]]) -> list[int]:
    """The breadths around the recalls that are told, and one more, as changes may cost recall."""
    efforts = [point["effort"] for point in points]
    wanted: set[int] = set()
    for recall in database_report.RECALLS:
        above = [at for at, point in enumerate(points) if point["recall"] >= recall]
        at = above[0] if above else len(points) - 1
        wanted.update(range(max(0, at - 1), min(len(points), at + 2)))
    return [efforts[at] for at in sorted(wanted)]


def update(running: Running, times: int) -> None:
    """Changes the rows so many times, each time from those at first."""
    efforts = around(running.measured.rounds[0])
    for number in range(times):
        print(f"  changing {running.peer.name} ...", file=sys.stderr, flush=True)
        if number:
            running.ask("restore", BUILD_TIMEOUT)
        running.measured.changes.append(change(running, efforts))


def change(running: Running, efforts: list[int]) -> dict[str, Any]:
    """Replaces a tenth, deletes a tenth, and searches right before and right after each."""
    changes: dict[str, Any] = {}

    def passes() -> list[dict[str, Any]]:
        return [running.ask("pass", effort=effort, **TIMES) for effort in efforts]

    if running.measured.changes:
        # What putting the rows back left to be done, is done meanwhile.
        rested = time.monotonic() + REST_SECONDS
        while time.monotonic() < rested:
            passes()
    changes["before"] = passes()
    changes |= running.ask("replace", BUILD_TIMEOUT)
    changes["replaced"] = passes()
    changes |= running.ask("delete", BUILD_TIMEOUT)
    changes["deleted"] = passes()
    return changes


def memory(running: Running) -> None:
    """What a fresh process takes that opens it; what the old one wrote, it wrote by then."""
    running.measured.memory = running.ask("close")
    running.stop()
    running.measured.memory |= running.ask("reopen")
    running.stop()


def measure(wanted: list[Running], rounds: int, changes: int) -> list[Measured]:
    """Builds all, alternates their passes, changes each."""
    in_turns(wanted, rounds, one_round)
    for running in wanted:
        running.attempt(lambda running: update(running, changes))
        running.attempt(memory)
    return [running.measured for running in wanted]


def start(peer: peers.Peer, folder: Path, metric: str, args: argparse.Namespace, works: Path) -> Running:
    """A peer that is about to run; one whose environment cannot be made is not measured."""
    why = None
    try:
        python = environments.ensure(peer.environment, args.cache) if peer.environment else sys.executable
    except environments.NotInstalled as error:
        python, why = sys.executable, str(error)
    command = [str(python), str(HERE / "database_child.py"), peer.name, str(folder), metric]
    more = ["--with-attributes"] if args.filters else []
    (works / peer.name).mkdir()
    running = Running(peer, [*command, str(works / peer.name), *more], works / peer.name, args.binary)
    running.measured.not_measured = why
    return running


def one_set(wanted: data.DataSet, args: argparse.Namespace) -> dict[str, Any]:
    """The report of one set."""
    print(wanted.name, file=sys.stderr, flush=True)
    try:
        folder = data.ensure(wanted, args.cache)
        if args.rows is not None:
            folder = data.ensure(data.beginning(wanted, folder, args.rows), args.cache)
        if args.filters:
            attributes.ensure(wanted, args.cache, folder)
    except data.NoData as why:
        return {"name": wanted.name, "not_measured": f"{why}; `make bench-ann` makes it", "systems": []}
    if args.filters:
        filters.ensure(folder, wanted.metric, args.filters)
    else:
        stages.ensure(folder, wanted.metric)
    about = json.loads((folder / "about.json").read_text())
    with ExitStack() as stack:
        works = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="databases-", dir=args.dir)))
        running = []
        for name in args.only:
            running.append(start(peers.by_name(name), folder, wanted.metric, args, works))
            stack.callback(running[-1].stop)
        if args.filters:
            measured = filtered_stage.measure(running, args.rounds, args.filters)
            return {**about, **filtered_report.of_set(measured, args.filters)}
        return {**about, **database_report.of_set(measure(running, args.rounds, args.changes))}


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="run.py", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=flags.positive, default=3, help="default %(default)s")
    parser.add_argument(
        "--changes", type=flags.positive, default=1, help="times that rows are changed; default %(default)s"
    )
    parser.add_argument("--rows", type=flags.positive, help="only so many of each set; default all")
    parser.add_argument(
        "--sets", type=data.by_names, default=data.by_names(DEFAULT_SETS), metavar="A,B", help=DEFAULT_SETS
    )
    parser.add_argument(
        "--filters",
        type=filters.names,
        nargs="?",
        const=filters.names(filters.DEFAULT),
        metavar="A,B",
        help=f"searches with filters: per cent of the rows, and {filters.OPPOSED}; {filters.DEFAULT} if not told",
    )
    parser.add_argument(
        "--only",
        metavar="A,B",
        help=f"{', '.join(peers.SEARCHED)}; with --filters {', '.join(peers.FILTERED)}",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="writes the report, every round in it")
    parser.add_argument("--binary", type=Path, default=paths.BINARY, help="default %(default)s")
    parser.add_argument(
        "--dir", type=Path, help="where the databases lie meanwhile: on a real disk, not tmpfs"
    )
    parser.add_argument(
        "--cache", type=Path, default=data.CACHE, help="where sets and environments are kept; %(default)s"
    )
    args = parser.parse_args(argv)
    names = list(peers.FILTERED if args.filters else peers.SEARCHED)
    try:
        args.only = flags.names(names, args.only) if args.only else names
    except argparse.ArgumentTypeError as error:
        parser.error(f"--only: {error}")
    return args


def main(argv: list[str] | None = None) -> int:
    """Measures, prints, writes."""
    args = arguments(argv)
    # Ending this must end the children too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    report: dict[str, Any] = {
        "machine": machine.describe(args.dir or Path(tempfile.gettempdir())),
        "rounds": args.rounds,
    }
    report["sets"] = [one_set(wanted, args) for wanted in args.sets]
    report["load_after"] = round(os.getloadavg()[0], 2)
    print((filtered_report if args.filters else database_report).render(report))
    if args.json:
        args.json.write_text(json.dumps(report, indent=1) + "\n")
    ours = [row for found in report["sets"] for row in found["systems"] if row["system"] in peers.OURS]
    return 1 if any("not_measured" in row for row in [*ours, *report["sets"]]) else 0
