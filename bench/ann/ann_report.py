"""The comparison as rows and as tables for the terminal."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import curves
from table import grid

REFERENCE = "hnswlib"
HEADER = (
    "",
    "build s",
    "x",
    "B/vector",
    *(part for recall in curves.RECALLS for part in (f"QPS@{recall:.2f}", "x", "range")),
    *(f"batched x@{recall:.2f}" for recall in curves.RECALLS[1:]),
)


@dataclass
class Result:
    """What one system did on one set, points a round, or why it did nothing."""

    name: str
    ready: dict[str, Any] | None = None
    rounds: list[list[dict[str, Any]]] = field(default_factory=list)
    not_measured: str | None = None

    @property
    def measured(self) -> bool:
        """Whether all rounds were."""
        return self.not_measured is None and bool(self.rounds)


def rows(results: list[Result]) -> list[dict[str, Any]]:
    """A row for each system, with its ratios to the reference if that was measured."""
    reference = next((result for result in results if result.name == REFERENCE and result.measured), None)
    return [_row(result, reference) for result in results]


def _row(result: Result, reference: Result | None) -> dict[str, Any]:
    row: dict[str, Any] = {"system": result.name}
    if not result.measured:
        return row | {"not_measured": result.not_measured or "no round ended"}
    row |= result.ready or {}
    if reference is not None and reference.ready and result.ready:
        row["build_ratio"] = _short(result.ready["build_cpu_s"] / reference.ready["build_cpu_s"])
    row["at_recall"] = [_at(result, reference, recall) for recall in curves.RECALLS]
    return row | {"points": curves.medians(result.rounds), "rounds": result.rounds}


def _at(result: Result, reference: Result | None, recall: float) -> dict[str, Any]:
    """Rates at one recall, and their ratios to the reference's of the same round."""
    out: dict[str, Any] = {"recall": recall}
    for figure in ("qps", "qps_batched"):
        rate = curves.middle(result.rounds, recall, figure)
        out[figure] = None if rate is None else _short(rate.qps)
        if figure == "qps":
            out["above"] = rate is not None and rate.above
        ratio = reference and curves.ratio(result.rounds, reference.rounds, recall, figure)
        # Whoever takes no batches is compared by single calls, which cost it no more.
        if figure == "qps_batched" and rate is None and reference:
            ratio = _single_to_batched(result, reference, recall)
        out[f"{figure}_ratio"] = _short(ratio.middle) if ratio else None
        out[f"{figure}_ratio_range"] = [_short(ratio.low), _short(ratio.high)] if ratio else None
        out[f"{figure}_ratio_above"] = bool(ratio and ratio.above)
    return out


def _single_to_batched(result: Result, reference: Result, recall: float) -> curves.Ratio | None:
    renamed = [[{**point, "qps_batched": point["qps"]} for point in points] for points in result.rounds]
    return curves.ratio(renamed, reference.rounds, recall, "qps_batched")


def render(report: dict[str, Any]) -> str:
    """A table for each set."""
    machine = report["machine"]
    lines = [
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_mb']:,} MB, {machine['kernel']}; "
        f"commit {machine['commit']}, load before {machine['load_before']}, after {report['load_after']}",
        f"{report['rounds']} rounds, one thread; queries a second of processor time, one a call, at a recall@10; x is in ratio "
        f"to {REFERENCE} of the same round, its median and range; * where the lowest setting finds more already",
    ]
    for found in report["sets"]:
        if why := found.get("not_measured"):
            lines += ["", f"{found['name']}: not measured: {why}"]
            continue
        title = f"{found['name']}: {found['rows']:,} x {found['dim']}, {found['metric']}, {found['queries']:,} queries"
        lines += ["", title]
        measured = [row for row in found["systems"] if "not_measured" not in row]
        lines += grid(HEADER, [_cells(row) for row in measured])
        missing = (row for row in found["systems"] if "not_measured" in row)
        lines += [f"{row['system']}: not measured: {row['not_measured']}" for row in missing]
    return "\n".join(lines)


def _cells(row: dict[str, Any]) -> tuple[Any, ...]:
    cells: list[Any] = [
        row["system"],
        row["build_cpu_s"],
        row.get("build_ratio", ""),
        row["bytes_per_vector"] or "-",
    ]
    for at in row["at_recall"]:
        rate = "-" if at["qps"] is None else f"{at['qps']:,.0f}{'*' if at['above'] else ''}"
        cells += [rate, _times(at, "qps"), _range(at["qps_ratio_range"])]
    return (*cells, *(_times(at, "qps_batched") for at in row["at_recall"][1:]))


def _times(at: dict[str, Any], figure: str) -> str:
    ratio = at[f"{figure}_ratio"]
    return "-" if ratio is None else f"{ratio:.2f}{'*' if at[f'{figure}_ratio_above'] else ''}"


def _range(low_high: list[float] | None) -> str:
    return "-" if low_high is None else f"{low_high[0]:.2f} - {low_high[1]:.2f}"


def _short(value: float) -> float:
    return float(f"{value:.4g}")
