#!/usr/bin/env python3
"""Recall and rate of Longbow's filtered searches as they are by default: no effort is told, one query a call, one thread.

    .venv/bin/python bench/filtered/filtered_recall.py [--sets wordnet-minilm] [--rows 20000] [--json FILE]

Each cell is a filter that passes few or many rows, which are independent of where the query is, near it, or far from it; see
`cells.py`. Truth is exact, among the rows that pass. Exit code 1 if an answer is short, has a row that does not pass, or a
cell's recall is below `--at-least`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent), str(HERE.parent / "ann")]

import attributes
import cells
import data
import filtered_truth
import flags
import longbow
import machine
from cells import Cell
from condition import Condition
from filtered_truth import K
from table import grid

DEFAULT_SETS = "fashion-mnist,wordnet-minilm"
#: A cell is searched again until it took so long, and no more queries than fit in so long.
LEAST_SECONDS, MOST_SECONDS = 0.3, 4.0
LEAST_QUERIES = 200


@dataclass(frozen=True)
class Searched:
    """A set in the engine, and what its answers are judged by."""

    database: longbow.Database
    base: np.ndarray
    queries: np.ndarray
    columns: attributes.Columns
    metric: str

    def ask(self, query: np.ndarray, condition: Condition | None) -> Any:
        """One search by default."""
        only = condition and (condition.field, condition.comparison, condition.value)
        return self.database.search("rows", query, K, filters=only)


def timed(searched: Searched, conditions: list[Condition] | list[None]) -> tuple[list[Any], list[float]]:
    """The answers, and the seconds of each call; repeated where they are fast, cut off where they are slow."""
    answers, times = [], []
    asked = list(zip(searched.queries, conditions, strict=True))
    start = time.perf_counter()
    while not times or time.perf_counter() < start + LEAST_SECONDS:
        for query, condition in asked:
            began = time.perf_counter()
            answer = searched.ask(query, condition)
            ended = time.perf_counter()
            times.append(ended - began)
            if len(answers) < len(asked):
                answers.append(answer)
            if ended > start + MOST_SECONDS and len(answers) >= LEAST_QUERIES:
                return answers, times
    return answers, times


def first_uses(searched: Searched, cell: Cell) -> float:
    """The median milliseconds of the first search with a filter that is new to the engine."""
    times = []
    for condition, queries in filtered_truth.by_condition(cell.conditions):
        began = time.perf_counter()
        searched.ask(searched.queries[queries[0]], condition)
        times.append(time.perf_counter() - began)
    return 1e3 * float(np.median(times))


def measure(searched: Searched, cell: Cell) -> dict[str, Any]:
    """A row of the report."""
    first_ms = first_uses(searched, cell)
    answers, times = timed(searched, list(cell.conditions))
    count = len(answers)
    conditions, queries = cell.conditions[:count], searched.queries[:count]
    allowed = {condition: condition.passes(searched.columns) for condition in set(conditions)}
    found = np.full((count, K), -1, np.int64)
    for row, answer in zip(found, answers, strict=True):
        row[: answer.num_rows] = answer["id"].to_numpy()
    true = filtered_truth.nearest(searched.base, queries, conditions, searched.columns, searched.metric)
    infos = [longbow.query_info(answer) for answer in answers]
    return {
        "attribute": cell.attribute,
        "relation": cell.relation,
        "share": float(np.mean([allowed[condition].mean() for condition in conditions])),
        "queries": count,
        "filters": len(allowed),
        **filtered_truth.judged(found, true, searched.base, queries, searched.metric, allowed, conditions),
        "qps": len(times) / sum(times),
        "p50_ms": 1e3 * float(np.percentile(times, 50)),
        "p99_ms": 1e3 * float(np.percentile(times, 99)),
        "first_ms": first_ms,
        "distances": float(np.mean([info.distance_computations or 0 for info in infos])),
        "strategies": dict(Counter(info.strategy for info in infos)),
    }


def unfiltered(searched: Searched, true: np.ndarray) -> dict[str, Any]:
    """The same without a filter."""
    answers, times = timed(searched, [None] * len(searched.queries))
    found = np.stack([answer["id"].to_numpy() for answer in answers])
    asked = slice(len(found))
    recall = filtered_truth.truth.recall(
        found, true[asked], searched.base, searched.queries[asked], searched.metric, K
    )
    return {"recall": recall, "qps": len(times) / sum(times), "queries": len(found)}


def one_set(wanted: data.DataSet, args: argparse.Namespace) -> dict[str, Any]:
    """The report of one set."""
    print(wanted.name, file=sys.stderr, flush=True)
    folder = data.ensure(wanted, args.cache)
    if args.rows is not None:
        folder = data.ensure(data.beginning(wanted, folder, args.rows), args.cache)
    known = attributes.load(attributes.ensure(wanted, args.cache, folder))
    some = slice(args.queries)
    known = attributes.Attributes(known.rows, {name: column[some] for name, column in known.queries.items()})
    base, queries = np.load(folder / "base.npy"), np.load(folder / "queries.npy")[some]
    around = cells.anchors(base, queries, wanted.metric)
    columns = known.rows | around.columns
    with (
        tempfile.TemporaryDirectory(prefix="filtered-", dir=args.dir) as place,
        longbow.open(Path(place) / "data") as database,
    ):
        rows = {"id": np.arange(len(base)), "vector": base, **columns}
        database.insert("rows", rows, metric=wanted.metric)
        database.wait_until_indexed("rows", timeout=3_600)
        searched = Searched(database, base, queries, columns, wanted.metric)
        none = unfiltered(searched, np.load(folder / "truth.npy"))
        found = []
        for cell in [*cells.exact_shares(around, len(base), args.shares), *cells.real(known, args.shares)]:
            print(f"  {cell.attribute} ...", file=sys.stderr, flush=True)
            found.append(measure(searched, cell))
    about = json.loads((folder / "about.json").read_text())
    return {**about, "unfiltered": none, "cells": found}


def render(report: dict[str, Any]) -> str:
    """A table for each set."""
    about = report["machine"]
    machine_line = (
        f"{about['cpu']}, {about['cores']} cores, {about['memory_mb']:,} MB; commit {about['commit']}"
    )
    legend = f"recall@{K} of searches by default among the rows that pass; first ms: the first search with a new filter"
    lines = [f"{machine_line}, load before {about['load_before']}", f"{legend}; distances: compared a search"]
    header = ("attribute", "relation", "passes", "recall", "QPS", "by none", "p50 ms", "p99", "first ms")
    for found in report["sets"]:
        none = found["unfiltered"]
        lines += ["", f"{found['name']}: {found['rows']:,} x {found['dim']}, {found['metric']}"]
        lines.append(f"without a filter: recall {none['recall']:.4f}, {none['qps']:,.0f} QPS")
        rows = [_line(cell, none) for cell in found["cells"]]
        lines += grid((*header, "distances", "short", "how"), rows)
    return "\n".join(lines)


def _line(cell: dict[str, Any], none: dict[str, Any]) -> tuple[Any, ...]:
    times = [f"{cell[name]:.3f}" for name in ("p50_ms", "p99_ms", "first_ms")]
    how = ", ".join(f"{name} {count}" for name, count in sorted(cell["strategies"].items()))
    rates = (f"{cell['qps']:,.0f}", f"{cell['qps'] / none['qps']:.2f}", *times, f"{cell['distances']:,.0f}")
    head = (cell["attribute"], cell["relation"], f"{100 * cell['share']:.3g} %", f"{cell['recall']:.4f}")
    return (*head, *rates, f"{cell['short']} of {cell['queries']}", how)


def faults(report: dict[str, Any], at_least: float) -> list[str]:
    """What must not be."""
    found = []
    for one in report["sets"]:
        for cell in one["cells"]:
            where = f"{one['name']}, {cell['attribute']} {cell['relation']}, {100 * cell['share']:.3g} %"
            if cell["recall"] < at_least:
                found.append(f"{where}: recall {cell['recall']:.4f} is below {at_least}")
            if cell["short"]:
                found.append(f"{where}: {cell['short']} of {cell['queries']} answers are short")
            if cell["wrong"]:
                found.append(f"{where}: {cell['wrong']} rows do not pass")
    return found


def at_least(least: int, text: str) -> int:
    """A number that is not below another."""
    number = flags.positive(text)
    if number < least:
        raise argparse.ArgumentTypeError(f"{number} is below {least}")
    return number


def shares(text: str) -> list[float]:
    """Shares of the rows in per cent, between commas."""
    try:
        found = [float(share) for share in text.split(",")]
    except ValueError:
        found = [0.0]
    if not all(0 < share <= 100 for share in found):
        raise argparse.ArgumentTypeError(f"{text} are not per cent above 0 and up to 100")
    return found


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--sets", type=data.by_names, default=data.by_names(DEFAULT_SETS), metavar="A,B", help=DEFAULT_SETS
    )
    parser.add_argument("--rows", type=flags.positive, help="only so many of each set; default all")
    parser.add_argument(
        "--queries", type=partial(at_least, LEAST_QUERIES), default=400, help="default %(default)s"
    )
    parser.add_argument(
        "--shares", type=shares, default=list(cells.SHARES), metavar="A,B", help="per cent; %(default)s"
    )
    parser.add_argument("--at-least", type=float, default=0.95, help="recall of each cell; %(default)s")
    parser.add_argument("--json", type=Path, metavar="FILE", help="writes the report")
    parser.add_argument(
        "--dir", type=Path, help="where the database lies meanwhile: on a real disk, not tmpfs"
    )
    parser.add_argument("--cache", type=Path, default=data.CACHE, help="where sets are kept; %(default)s")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Measures, prints, writes."""
    args = arguments(argv)
    report: dict[str, Any] = {"machine": machine.describe(args.dir or Path(tempfile.gettempdir()))}
    report["sets"] = [one_set(wanted, args) for wanted in args.sets]
    report["faults"] = faults(report, args.at_least)
    print("\n".join([render(report), "", *report["faults"]]))
    if args.json:
        args.json.write_text(json.dumps(report, indent=1) + "\n")
    return 1 if report["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
