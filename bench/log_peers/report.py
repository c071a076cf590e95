"""From rounds to rows, and from rows to tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import bench_path  # noqa: F401  (makes the modules of bench/ importable)
from case import Case, Figures, Peer
from table import grid

OURS = "longbow"
HEADER = (
    "",
    "entries/s",
    "MB/s",
    "p50 ms",
    "p95 ms",
    "p99 ms",
    "Longbow's rate",
    "range",
    "Longbow's p99",
    "policy",
)


@dataclass
class Rounds:
    """What a system did in one case, a value a round, or why it has none."""

    peer: Peer
    case: Case
    figures: list[Figures] = field(default_factory=list)
    not_measured: str | None = None


def rows(results: list[Rounds]) -> list[dict[str, Any]]:
    """A row for each system and case, with the medians of its rounds and Longbow's ratio to it."""
    ours = {result.case: result for result in results if result.peer.name == OURS}
    return [_row(result, ours.get(result.case)) for result in results]


def _row(result: Rounds, ours: Rounds | None) -> dict[str, Any]:
    case = result.case
    out: dict[str, Any] = {"system": result.peer.name, "policy": result.peer.policy, "mode": case.mode}
    out |= {"callers": case.callers, "rows_per_commit": case.rows}
    if result.not_measured is not None:
        return out | {"not_measured": result.not_measured}
    for name in ("entries_per_s", "mb_per_s", "p50_ms", "p95_ms", "p99_ms"):
        out[name] = _short(median(getattr(figures, name) for figures in result.figures))
    if ours is not None and ours.not_measured is None and ours is not result:
        out |= _ratio("longbow_rate_ratio", ours, result, lambda figures: figures.entries_per_s)
        out |= _ratio("longbow_p99_ratio", ours, result, lambda figures: figures.p99_ms)
    out["rounds"] = [
        {"entries_per_s": _short(figures.entries_per_s), "p99_ms": _short(figures.p99_ms)}
        for figures in result.figures
    ]
    return out


def _ratio(name: str, ours: Rounds, theirs: Rounds, of: Callable[[Figures], float]) -> dict[str, Any]:
    """The median of the ratios taken round by round, and their range: what drifts over a run drifts for both.

    None where a peer tells whole milliseconds and it took less than one.
    """
    if any(of(figures) == 0 for figures in theirs.figures):
        return {}
    ratios = [of(a) / of(b) for a, b in zip(ours.figures, theirs.figures, strict=True)]
    return {name: _short(median(ratios)), f"{name}_range": [_short(min(ratios)), _short(max(ratios))]}


def render(report: dict[str, Any]) -> str:
    """A table for each case."""
    machine = report["machine"]
    disk = f"{machine['file_system']}; commit {machine['commit']}"
    load = f"load before {machine['load_before']}, after {report['load_after']}"
    rounds = f"{report['rounds']} rounds of {report['seconds']:g} s after {report['warmup']:g} s"
    lines = [
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_mb']:,} MB, {machine['kernel']}, {disk}, {load}",
        f"{rounds}; entries of 1 KB; medians; Longbow's rate and p99 are in ratio to the row's own",
    ]
    by_case: dict[Case, list[dict[str, Any]]] = {}
    for row in report["rows"]:
        by_case.setdefault(Case(row["callers"], row["rows_per_commit"], row["mode"]), []).append(row)
    for case, found in by_case.items():
        lines += ["", case.title, *grid(HEADER, [_cells(row) for row in found])]
    return "\n".join(lines)


def _cells(row: dict[str, Any]) -> tuple[Any, ...]:
    if why := row.get("not_measured"):
        return (row["system"], *[""] * (len(HEADER) - 2), f"not measured: {why}")
    measured = [row[name] for name in ("entries_per_s", "mb_per_s", "p50_ms", "p95_ms", "p99_ms")]
    if "longbow_rate_ratio" not in row:
        return (row["system"], *measured, "", "", "", row["policy"])
    low, high = row["longbow_rate_ratio_range"]
    ratios = (row["longbow_rate_ratio"], f"{low:g} - {high:g}", row.get("longbow_p99_ratio", ""))
    return (row["system"], *measured, *ratios, row["policy"])


def _short(value: float) -> float:
    return float(f"{value:.4g}")
