"""Longbow's indexes beside hnswlib and others, on real vectors: recall against queries a second of processor time.

Each system is a process of its own that builds once, on one thread. In each round, each system makes a pass over all queries at
each breadth, one query a call and then all in one; the next round begins with another system. What cannot be had is
`not measured`, and why. Exit code 1 if Longbow itself, or a set, was not measured.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent))

import adapters
import ann_report
import curves
import data
import flags
import machine
import paths
import plot
import systems
from ann_report import Result

QUICK_ROWS = 20_000


def plans(folder: Path, metric: str, binary: Path, only: list[str]) -> list[systems.Plan]:
    """How to start what was asked for."""
    ours = [systems.longbow(binary, index, folder, metric) for index in systems.LONGBOW]
    peers = [systems.peer(kind.name, kind.sweep, folder, metric) for kind in adapters.ALL]
    return [plan for plan in [*ours, *peers] if plan.name in only]


def measure(wanted: list[systems.Plan], rounds: int, logs: Path) -> list[Result]:
    """Builds all of them one after the other, then alternates their passes."""
    results = {plan.name: Result(plan.name) for plan in wanted}
    with ExitStack() as stack:
        running = []
        for plan in wanted:
            print(f"  building {plan.name} ...", file=sys.stderr, flush=True)
            try:
                system = systems.System(plan, logs / f"{plan.name}.log")
            except systems.NotMeasured as why:
                results[plan.name].not_measured = str(why)
                continue
            stack.callback(system.stop)
            results[plan.name].ready = system.ready
            running.append(system)
        for number in range(rounds):
            print(f"  round {number + 1} of {rounds} ...", file=sys.stderr, flush=True)
            first = number % max(1, len(running))
            for system in running[first:] + running[:first]:
                result = results[system.plan.name]
                if result.not_measured is None:
                    try:
                        result.rounds.append(one_round(system))
                    except systems.NotMeasured as why:
                        result.not_measured = str(why)
    return list(results.values())


def one_round(system: systems.System) -> list[dict[str, Any]]:
    """Every breadth; the first pass of all is made twice, since the caches are the one's before."""
    system.point(system.plan.sweep[0], False)
    points = []
    for effort in system.plan.sweep:
        point = system.point(effort, False)
        if system.ready["batches"]:
            point["qps_batched"] = system.point(effort, True)["qps_batched"]
        points.append(point)
    return points


def one_set(wanted: data.DataSet, args: argparse.Namespace, logs: Path) -> dict[str, Any]:
    """The report of one set."""
    print(wanted.name, file=sys.stderr, flush=True)
    try:
        folder = data.ensure(wanted, args.cache)
        if args.rows is not None:
            folder = data.ensure(data.beginning(wanted, folder, args.rows), args.cache)
    except data.NoData as why:
        return {"name": wanted.name, "not_measured": str(why), "systems": []}
    about = json.loads((folder / "about.json").read_text())
    found = measure(plans(folder, wanted.metric, args.binary, args.only), args.rounds, logs)
    return {**about, "systems": ann_report.rows(found)}


def panels(report: dict[str, Any]) -> list[tuple[str, list[plot.Curve]]]:
    """What is drawn: of each set, the systems that were measured and reach the picture."""
    out = []
    for found in report["sets"]:
        drawn = []
        for row in found["systems"]:
            best = curves.frontier(curves.pairs(row.get("points", []), "qps"))
            curve = plot.Curve(row["system"], best)
            drawn += [curve] if curve.seen() else []
        if drawn:
            out.append((f"{found['name']}, {found['rows']:,} x {found['dim']}, {found['metric']}", drawn))
    return out


def draw(report: dict[str, Any], svg: Path | None, png: Path | None) -> None:
    """Writes the pictures that were asked for."""
    shown = panels(report)
    if svg and shown:
        svg.write_text(plot.svg(shown))
    if png and shown:
        try:
            plot.png(shown, png)
        except ImportError as error:
            print(f"{png}: not drawn: {error}", file=sys.stderr)


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    names = systems.names([kind.name for kind in adapters.ALL])
    parser = argparse.ArgumentParser(prog="run.py", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="20,000 rows and 2 rounds: minutes, rough figures"
    )
    parser.add_argument("--rounds", type=flags.positive, help="default 7")
    parser.add_argument("--rows", type=flags.positive, help="only so many of each set; default all")
    parser.add_argument(
        "--sets", type=data.by_names, default=list(data.SETS), metavar="A,B", help="default all"
    )
    parser.add_argument(
        "--only", type=partial(flags.names, names), default=names, metavar="A,B", help=", ".join(names)
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="writes the report, every round in it")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="draws the curves")
    parser.add_argument("--png", type=Path, metavar="FILE", help="draws the curves")
    parser.add_argument("--binary", type=Path, default=paths.BINARY, help="default %(default)s")
    parser.add_argument(
        "--cache", type=Path, default=data.CACHE, help="where the sets are kept; default %(default)s"
    )
    args = parser.parse_args(argv)
    if args.rounds is None:
        args.rounds = 2 if args.quick else 7
    if args.rows is None and args.quick:
        args.rows = QUICK_ROWS
    return args


def main() -> int:
    """Measures, prints, writes."""
    args = arguments()
    # Ending this must end the children too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    report: dict[str, Any] = {"machine": machine.describe(args.cache.parent), "rounds": args.rounds}
    with tempfile.TemporaryDirectory(prefix="ann-") as logs:
        report["sets"] = [one_set(wanted, args, Path(logs)) for wanted in args.sets]
    report["load_after"] = round(os.getloadavg()[0], 2)
    print(ann_report.render(report))
    if args.json:
        args.json.write_text(json.dumps(report, indent=1) + "\n")
    draw(report, args.svg, args.png)
    ours = [
        row
        for found in report["sets"]
        for row in found["systems"]
        if row["system"].startswith(systems.PREFIX)
    ]
    return 1 if any("not_measured" in row for row in [*ours, *report["sets"]]) else 0


if __name__ == "__main__":
    sys.exit(main())
