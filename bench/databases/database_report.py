"""The comparison of databases as rows and as tables for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import curves
import peers
from table import grid

RECALLS = (0.95, 0.99)
YARDSTICK = "hnswlib"
SEARCHED = ("", "rows/s in", "indexed s", "x")
CHANGED = ("", "replaced/s", "deleted/s")
KEPT = ("", "anon MB", "file MB", "open s", "disk MB", "at the end")


@dataclass
class Measured:
    """What one system said."""

    name: str
    not_measured: str | None = None
    built: dict[str, Any] = field(default_factory=dict)
    rounds: list[list[dict[str, Any]]] = field(default_factory=list)
    changes: list[dict[str, Any]] = field(default_factory=list)
    memory: dict[str, Any] = field(default_factory=dict)


def of_set(found: list[Measured]) -> dict[str, Any]:
    """A row for each system, and the ratios that matter."""
    good = {one.name: one for one in found if one.not_measured is None}
    systems: list[dict[str, Any]] = []
    for one in found:
        if one.not_measured is not None:
            systems.append({"system": one.name, "not_measured": one.not_measured})
        else:
            systems.append(_row(one, good.get(YARDSTICK)))
    return {"systems": systems, "against": list(_against(good))}


def _row(one: Measured, yardstick: Measured | None) -> dict[str, Any]:
    row: dict[str, Any] = {"system": one.name, **one.built, **one.memory, "rounds": one.rounds}
    row["changes"] = one.changes
    if yardstick is not None:
        row["indexed_ratio"] = one.built["indexed_s"] / yardstick.built["indexed_s"]
    row["at_recall"] = []
    for recall in RECALLS:
        at: dict[str, Any] = {"recall": recall}
        for figure in ("qps", "qps_many"):
            rate = curves.middle(one.rounds, recall, figure)
            at[figure] = rate and rate.qps
            at[f"{figure}_above"] = bool(rate and rate.above)
        if yardstick is not None:
            ratio = curves.ratio(one.rounds, yardstick.rounds, recall)
            at["qps_ratio"] = ratio and ratio.middle
        at |= _latency(one, recall)
        at |= _after_changes(one, recall)
        row["at_recall"].append(at)
    return row


def _latency(one: Measured, recall: float) -> dict[str, Any]:
    """Of the least effort that finds so much, the median of the rounds."""
    points = [next((p for p in round_ if p["recall"] >= recall), None) for round_ in one.rounds]
    if not points or None in points:
        return {"p50_ms": None, "p99_ms": None}
    return {name: median(point[name] for point in points) for name in ("p50_ms", "p99_ms")}


def _after_changes(one: Measured, recall: float) -> dict[str, Any]:
    """The rate right after a change by the rate before, both at the same recall: medians of all changes."""
    found: dict[str, Any] = {}

    def rate(changes: dict[str, Any], stage: str) -> float | None:
        there = curves.at(curves.pairs(changes[stage], "qps"), recall)
        return there and there.qps

    for stage in ("replaced", "deleted"):
        after = [rate(changes, stage) for changes in one.changes]
        before = [rate(changes, "before") for changes in one.changes]
        # Where one change loses so much that no breadth finds it, the others do not make up for that.
        ratios = [a and b and a / b for a, b in zip(after, before, strict=True)]
        found[f"qps_{stage}"] = median(after) if all(after) and after else None
        found[f"qps_{stage}_ratio"] = median(ratios) if all(ratios) and ratios else None
    return found


def _against(good: dict[str, Measured]) -> Iterator[dict[str, Any]]:
    """Longbow, each way in, by the best database of the same round, and by Qdrant."""
    for ours, figure in (("longbow", "qps"), ("longbow-wire", "qps"), ("longbow-wire", "qps_many")):
        for whom, names in (("the best database", peers.DATABASES), ("qdrant", ("qdrant",))):
            others = [good[name] for name in names if name in good]
            if ours not in good or not others:
                continue
            for recall in RECALLS:
                yield {"ours": ours, "figure": figure, "whom": whom, "recall": recall} | _by_best(
                    good[ours], figure, others, recall
                )


def _by_best(ours: Measured, figure: str, others: list[Measured], recall: float) -> dict[str, Any]:
    """Our rate by the best of theirs, one query a call, round by round."""
    ratios, best = [], ""
    for number, points in enumerate(ours.rounds):
        mine = curves.at(curves.pairs(points, figure), recall)
        theirs = {
            other.name: rate.qps
            for other in others
            if (rate := curves.at(curves.pairs(other.rounds[number], "qps"), recall)) is not None
        }
        if mine is None or not theirs:
            return {"ratio": None, "best": None}
        best = max(theirs, key=lambda name: theirs[name])
        ratios.append(mine.qps / theirs[best])
    return {"ratio": median(ratios), "range": [min(ratios), max(ratios)], "best": best}


def heading(report: dict[str, Any]) -> str:
    """What it was measured on."""
    machine = report["machine"]
    return (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_mb']:,} MB, {machine['kernel']}, "
        f"{machine['file_system']}; commit {machine['commit']}, load before {machine['load_before']}, "
        f"after {report['load_after']}"
    )


def render(report: dict[str, Any]) -> str:
    """Tables for each set."""
    legend = (
        f"{report['rounds']} rounds, one client thread, one query a call, k=10; QPS at a recall, by wall time; x is in "
        f"ratio to {YARDSTICK} of the same round; * where the lowest setting finds more already; many: all queries in "
        "one call or stream"
    )
    return tables(report, legend, _set)


def tables(report: dict[str, Any], legend: str, of_set: Callable[[dict[str, Any]], Iterable[str]]) -> str:
    """What was measured where, and the lines of each set, or why there are none."""
    lines = [heading(report), legend]
    for found in report["sets"]:
        if why := found.get("not_measured"):
            lines += ["", f"{found['name']}: not measured: {why}"]
            continue
        lines += ["", f"{found['name']}: {found['rows']:,} x {found['dim']}, {found['metric']}"]
        lines += of_set(found)
    return "\n".join(lines)


def systems(found: dict[str, Any], told: Callable[[dict[str, Any]], str]) -> Iterator[str]:
    """What each system of a set is, and what else is told of it; or why it was not measured."""
    for row in found["systems"]:
        if "not_measured" in row:
            yield f"{row['system']}: not measured: {row['not_measured']}"
            continue
        versions = ", ".join(f"{name} {version}" for name, version in row["versions"].items())
        yield f"{row['system']}: {versions}{'; ' if versions else ''}{row['settings']}; {told(row)}"


def _set(found: dict[str, Any]) -> Iterator[str]:
    rows = [row for row in found["systems"] if "not_measured" not in row]
    header = list(SEARCHED)
    for recall in RECALLS:
        header += [f"QPS@{recall}", "x", "p50 ms", "p99", "many"]
    yield from grid(header, [_searched(row) for row in rows])
    yield ""
    header = list(CHANGED)
    for recall in RECALLS:
        header += [f"QPS@{recall} replaced", "by before", "deleted", "by before"]
    yield from grid(header, [_changed(row) for row in rows])
    yield ""
    yield from grid(KEPT, [_kept(row) for row in rows])
    yield ""
    yield from systems(found, lambda row: f"acknowledged means {row['acknowledged']}")
    yield ""
    for one in found["against"]:
        how = "streamed" if one["figure"] == "qps_many" else "one by one"
        ratio = "-" if one["ratio"] is None else f"{one['ratio']:.2f} ({_range(one['range'])}, {one['best']})"
        yield f"{one['ours']} {how} by {one['whom']} one by one at {one['recall']}: {ratio}"


def _searched(row: dict[str, Any]) -> tuple[Any, ...]:
    cells: list[Any] = [
        row["system"],
        row["rows_per_second"],
        row["indexed_s"],
        _times(row.get("indexed_ratio")),
    ]
    for at in row["at_recall"]:
        cells += [_rate(at, "qps"), _times(at.get("qps_ratio")), _short(at["p50_ms"]), _short(at["p99_ms"])]
        cells.append(_rate(at, "qps_many"))
    return tuple(cells)


def _changed(row: dict[str, Any]) -> tuple[Any, ...]:
    cells: list[Any] = [
        row["system"],
        *(median(of[f"{what}_per_second"] for of in row["changes"]) for what in ("replaced", "deleted")),
    ]
    for at in row["at_recall"]:
        for stage in ("replaced", "deleted"):
            rate = at[f"qps_{stage}"]
            cells += ["-" if rate is None else f"{rate:,.0f}", _times(at[f"qps_{stage}_ratio"])]
    return tuple(cells)


def _kept(row: dict[str, Any]) -> tuple[Any, ...]:
    names = ("anonymous_mb", "file_mb", "open_s", "disk_mb", "disk_mb_end")
    return (row["system"], *(row[name] for name in names))


def _rate(at: dict[str, Any], figure: str) -> str:
    return "-" if at[figure] is None else f"{at[figure]:,.0f}{'*' if at[f'{figure}_above'] else ''}"


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}"


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _range(low_high: list[float]) -> str:
    return f"{low_high[0]:.2f} - {low_high[1]:.2f}"
