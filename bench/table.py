"""The report as tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

Row = Sequence[Any]


def render(report: dict[str, Any]) -> str:
    """All sections that were measured."""
    machine = report["machine"]
    lines = [
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_mb']:,} MB, {machine['kernel']}, "
        f"{machine['file_system']}; commit {machine['commit']}, {report['mode']} run, "
        f"load before {machine['load_before']}, after {report['load_after']}"
    ]
    for title, header, rows in tables(report["sections"]):
        lines += ["", title, *grid(header, rows)]
    return "\n".join(lines)


def tables(sections: dict[str, Any]) -> Iterator[tuple[str, Row, list[Row]]]:
    """Title, header and rows of each section."""
    header = ("", "Longbow", "peer", "ratio", "range", "unit")
    if transfer := sections.get("transfer"):
        rows: list[Row] = []
        for count, kinds in transfer.items():
            for kind in ("put", "get"):
                rows.append((f"Do{kind.capitalize()} {int(count):,} x 128", *pair(kinds[kind], "bare")))
                cpu = (kinds[kind]["longbow_cpu_s"], kinds[kind]["bare_cpu_s"])
                rows.append(("  server CPU a round", *cpu, "", "", "s"))
                threads = kinds[kind].get("longbow_cpu_s_by_thread", {})
                rows += [
                    (f"    {name}", used, "", "", "", "s") for name, used in threads.items() if used >= 0.01
                ]
        yield "Transfer beside a bare Flight server (pyarrow)", header, rows
    if disk := sections.get("disk"):
        rows = [(key, value) for key, value in disk.items() if key not in ("rounds", "unit")]
        yield "Long put beyond the unsynced window beside the raw disk, MB/s", ("", "value"), rows
    if tiny := sections.get("tiny"):
        yield "DoGet of one row, p50", header, [("DoGet 1 row", *pair(tiny, "bare"))]
    if search := sections.get("search"):
        rows = [("total " + name, value) for name, value in search["total"].items()]
        rows += [("p50 of " + name, value) for name, value in search["p50_parts"].items()]
        yield (
            f"One search through DoGet, {search['rows']:,} x {search['dim']}, k={search['k']}, us",
            ("", "us"),
            rows,
        )
    if build := sections.get("build"):
        yield "Ingest with indexing until READY beside hnswlib", header, build_rows(build)
    if fresh := sections.get("freshness"):
        yield "Freshness during full-speed ingest", ("", "value"), list(fresh.items())


def build_rows(build: dict[str, Any]) -> list[Row]:
    """Rate, CPU and recall of both builds."""
    recall, cpu, rate = build["recall_at_10"], build["cpu_seconds"], build["ingest_and_index"]
    first = (
        pair(rate, "hnswlib") if "ratio" in rate else (rate["longbow"], rate["hnswlib"], "", "", rate["unit"])
    )
    return [
        (f"{build['rows']:,} x {build['dim']}", *first),
        ("CPU", cpu["longbow"], cpu.get("hnswlib", "not measured"), "", "", "s"),
        (
            f"recall@10, ef={build['ef']}",
            recall["longbow"],
            recall.get("hnswlib", "not measured"),
            "",
            "",
            "",
        ),
        ("acknowledged", build["acknowledged_rows_per_second"], "", "", "", "rows/s"),
    ]


def pair(summary: dict[str, Any], peer: str) -> Row:
    """The cells of a summary of pairs."""
    low, high = summary["ratio_range"]
    return (summary["longbow"], summary[peer], summary["ratio"], f"{low} - {high}", summary["unit"])


def grid(header: Row, rows: list[Row]) -> list[str]:
    """Columns padded to their widest cell."""
    cells = [[_text(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]
    return [lines[0], "-" * (sum(widths) + 2 * (len(widths) - 1)), *lines[1:]]


def _text(cell: Any) -> str:
    if isinstance(cell, float):
        return f"{cell:,.4g}" if abs(cell) < 100 else f"{cell:,.0f}"
    if isinstance(cell, int) and not isinstance(cell, bool):
        return f"{cell:,}"
    return str(cell)
