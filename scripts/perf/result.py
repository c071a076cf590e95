"""What a test found, as JSON and as a line for the terminal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

MB = 1e6


@dataclass
class Result:
    """One test: its throughput, its latencies in milliseconds, its errors, and what else it found.

    `skipped` holds the server's text where the server does not offer what the test needs; such a test
    neither passed nor failed.
    """

    name: str
    duration_seconds: float = 0.0
    throughput: float = 0.0
    throughput_unit: str = ""
    rows: int = 0
    bytes_processed: int = 0
    latencies_ms: Sequence[float] = ()
    errors: int = 0
    first_error: str | None = None
    skipped: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    def percentile(self, q: float) -> float | None:
        """The q-th percentile of the latencies, None where none were measured."""
        if len(self.latencies_ms) == 0:
            return None
        return round(float(np.percentile(self.latencies_ms, q)), 4)

    def to_json(self) -> dict[str, Any]:
        """The object written by `--json`."""
        out: dict[str, Any] = {
            "name": self.name,
            "duration_seconds": round(self.duration_seconds, 6),
            "throughput": round(self.throughput, 3),
            "throughput_unit": self.throughput_unit,
            "rows": self.rows,
            "bytes_processed": self.bytes_processed,
            "p50_ms": self.percentile(50),
            "p95_ms": self.percentile(95),
            "p99_ms": self.percentile(99),
            "errors": self.errors,
        }
        if self.first_error:
            out["first_error"] = self.first_error
        if self.skipped is not None:
            out["skipped"] = self.skipped
        out.update(self.extra)
        return out

    def line(self) -> str:
        """One line for the terminal."""
        if self.skipped is not None:
            return f"{self.name:<22} skipped: {self.skipped}"
        parts = [f"{self.name:<22} {self.throughput:>11,.1f} {self.throughput_unit:<9}"]
        if self.duration_seconds:
            parts.append(f"{self.duration_seconds:8.3f} s")
        if self.throughput_unit == "MB/s" and self.duration_seconds:
            parts.append(f"{self.rows / self.duration_seconds:,.0f} rows/s")
        if len(self.latencies_ms):
            parts.append("p50 {} p95 {} p99 {} ms".format(*(self.percentile(q) for q in (50, 95, 99))))
        parts += [f"{key} {value}" for key, value in self.extra.items() if _short(value)]
        parts.append(f"errors {self.errors}")
        if self.first_error:
            parts.append(f"first error: {self.first_error}")
        return "  ".join(parts)


def _short(value: Any) -> bool:
    return isinstance(value, (int, float, str)) and len(str(value)) <= 40


def skipped(name: str, text: str, **extra: Any) -> Result:
    """The result of a test the server does not offer."""
    return Result(name, skipped=text, extra=extra)


def failed(name: str, text: str, **extra: Any) -> Result:
    """The result of a test that could not run to its end."""
    return Result(name, errors=1, first_error=text, extra=extra)


def write_json(results: Sequence[Result], file: Path) -> None:
    """Writes the list of results to `file`."""
    file.write_text(json.dumps([result.to_json() for result in results], indent=2) + "\n")
