"""The comparison under filters as rows and as tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import curves
import peers
from database_report import Measured, systems, tables
from table import grid

RECALL = 0.95
Points = list[dict[str, Any]]


@dataclass
class Filtered:
    """What one system said: each round its passes without a filter, and under each."""

    measured: Measured
    plain: list[Points] = field(default_factory=list)
    rounds: list[dict[str, Points]] = field(default_factory=list)

    def under(self, name: str) -> list[Points]:
        """The passes under a filter, round by round."""
        return [found[name] for found in self.rounds]


def least_effort(points: Points) -> int | None:
    """The least breadth that finds enough."""
    return min((point["effort"] for point in points if point["recall"] >= RECALL), default=None)


def fastest(rounds: list[Points]) -> dict[str, Any] | None:
    """Of the breadths that find enough, the one with the highest median rate; None if there is none.

    `above`: it is the lowest there is, and finds more than was asked for, so the system might go faster yet.
    """
    points = curves.medians(rounds)
    good = [point for point in points if point["recall"] >= RECALL]
    if not good:
        return None
    best = max(good, key=lambda point: point["qps"])
    lowest = min(point["effort"] for point in points)
    return {**best, "above": best["effort"] == lowest and best["recall"] > RECALL}


def at_effort(points: Points, effort: int | None) -> dict[str, Any] | None:
    """The pass at a breadth."""
    return next((point for point in points if point["effort"] == effort), None)


def of_set(found: list[Filtered], filters: list[str]) -> dict[str, Any]:
    """A row for each system with a cell for each filter, and Longbow by the best database."""
    systems: list[dict[str, Any]] = []
    for one in found:
        if one.measured.not_measured is not None:
            systems.append({"system": one.measured.name, "not_measured": one.measured.not_measured})
            continue
        row = {"system": one.measured.name, **one.measured.built, "plain": fastest(one.plain)}
        row["filters"] = [_cell(one, name, row["plain"]) for name in filters]
        systems.append(row | {"plain_rounds": one.plain, "rounds": one.rounds})
    return {"systems": systems, "against": list(_against(systems, filters))}


def _cell(one: Filtered, name: str, plain: dict[str, Any] | None) -> dict[str, Any]:
    rounds = one.under(name)
    points = curves.medians(rounds)
    best = fastest(rounds)
    cell: dict[str, Any] = {"filter": name, "share": points[0]["share"], "fastest": best, "by_plain": None}
    cell["best_recall"] = max(point["recall"] for point in points)
    cell["wrong"] = sum(point["wrong"] for round_ in rounds for point in round_)
    if best and plain:
        pairs = [
            (at_effort(mine, best["effort"]), at_effort(without, plain["effort"]))
            for mine, without in zip(rounds, one.plain, strict=True)
        ]
        ratios = [mine["qps"] / without["qps"] for mine, without in pairs if mine and without]
        cell["by_plain"] = median(ratios) if ratios else None
    enough = least_effort(curves.medians(one.plain))
    cell["as_plain"] = at_effort(points, enough)
    return cell


def _against(systems: list[dict[str, Any]], filters: list[str]) -> Iterator[dict[str, Any]]:
    """Longbow under each filter by the fastest database that finds enough there."""
    rates = {
        (row["system"], cell["filter"]): cell["fastest"]["qps"]
        for row in systems
        for cell in row.get("filters", ())
        if cell["fastest"]
    }
    for name in filters:
        others = {peer: rates[peer, name] for peer in peers.DATABASES if (peer, name) in rates}
        ours = rates.get(("longbow", name))
        if ours and others:
            best = max(others, key=lambda peer: others[peer])
            yield {"filter": name, "best": best, "ratio": ours / others[best]}


def render(report: dict[str, Any]) -> str:
    """Tables for each set: the fastest that finds enough, and what the breadth finds that is enough without a filter."""
    legend = (
        f"{report['rounds']} rounds, one client thread, one query a call, k=10, the filter in each call; the fastest "
        f"breadth with recall@10 >= {RECALL} of the rows that pass; * the lowest finds more already; by none: by the "
        "QPS of the same system without a filter; short: answers with fewer rows than min(k, those that pass)"
    )
    return tables(report, legend, _set)


def _set(found: dict[str, Any]) -> Iterator[str]:
    rows = [row for row in found["systems"] if "not_measured" not in row]
    header = ("", "filter", "passes", "QPS", "by none", "recall", "effort", "p50 ms", "p99", "short")
    table: list[tuple[Any, ...]] = []
    for row in rows:
        table.append((row["system"], "none", "", *_best(row["plain"], None, "")))
        table += [_fastest(cell) for cell in row["filters"]]
    yield from grid(header, table)
    yield ""
    yield f"At the least effort with recall >= {RECALL} without a filter: recall, QPS, short of how many"
    names = [cell["filter"] for cell in rows[0]["filters"]] if rows else []
    header = ("", "effort", *names)
    yield from grid(header, [_as_plain(row) for row in rows])
    yield ""
    yield from systems(found, lambda row: f"indexed {row['indexed_s']:.1f} s")
    for row in rows:
        if wrong := {cell["filter"]: cell["wrong"] for cell in row["filters"] if cell["wrong"]}:
            yield f"{row['system']}: ROWS THAT DO NOT PASS: {wrong}"
    yield ""
    for one in found["against"]:
        yield f"longbow by the best database under {one['filter']}: {one['ratio']:.2f} ({one['best']})"


def _fastest(cell: dict[str, Any]) -> tuple[Any, ...]:
    short = f"{cell['fastest']['short']:.0f} of {cell['fastest']['asked']:.0f}" if cell["fastest"] else ""
    head = ("", cell["filter"], f"{100 * cell['share']:.3g} %")
    if cell["fastest"] is None:
        return (*head, "-", "-", f"{cell['best_recall']:.3f}", "", "", "", "")
    return (*head, *_best(cell["fastest"], cell["by_plain"], short))


def _best(best: dict[str, Any] | None, ratio: float | None, short: str) -> tuple[Any, ...]:
    if best is None:
        return ("-", "", "", "", "", "", short)
    rate = f"{best['qps']:,.0f}{'*' if best['above'] else ''}"
    times = "" if ratio is None else f"{ratio:.2f}"
    latency = (f"{best['p50_ms']:.3f}", f"{best['p99_ms']:.3f}")
    return (rate, times, f"{best['recall']:.3f}", f"{best['effort']}", *latency, short)


def _as_plain(row: dict[str, Any]) -> tuple[Any, ...]:
    efforts = {cell["as_plain"]["effort"] for cell in row["filters"] if cell["as_plain"]}
    cells = [f"{min(efforts)}" if efforts else "-"]
    for cell in row["filters"]:
        at = cell["as_plain"]
        told = at and f"{at['recall']:.3f}  {at['qps']:,.0f}  {at['short']:.0f}/{at['asked']:.0f}"
        cells.append(told or "-")
    return (row["system"], *cells)
