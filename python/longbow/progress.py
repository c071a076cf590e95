"""A line on a terminal that shows how far an insert has come."""

from __future__ import annotations

import sys
import time
from typing import Callable, Optional, TextIO, Union

#: What an insert's ``progress`` may be: on, off, or a function that is called
#: with the rows sent so far and their total (None where it is not known).
Progress = Union[None, bool, Callable[[int, Optional[int]], None]]

# Below this many rows an insert is over before a line could be read.
_AUTO_ROWS = 100_000
_REDRAW_SECONDS = 0.1


def reporter(progress: Progress, total: int | None) -> Callable[[int, int, bool], None]:
    """A function to call with rows and bytes so far, and whether that is the end."""
    if callable(progress):
        told = progress
        return lambda rows, _bytes, _end: told(rows, total)
    if progress is None:
        progress = sys.stderr.isatty() and (total is None or total >= _AUTO_ROWS)
    return Line(sys.stderr, total).show if progress else (lambda _rows, _bytes, _end: None)


class Line:
    """One line, redrawn in place at most ten times a second."""

    def __init__(
        self,
        out: TextIO,
        total: int | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._out, self._total, self._clock = out, total, clock
        self._start = clock()
        self._drawn = self._start
        self._width = 0

    def show(self, rows: int, sent: int, end: bool) -> None:
        """Draws the line if its time has come; at the end always, and keeps it."""
        now = self._clock()
        if not end and now - self._drawn < _REDRAW_SECONDS:
            return
        self._drawn = now
        text = line(rows, sent, now - self._start, self._total)
        # Blanks cover what is left of a longer line drawn before.
        self._out.write("\r" + text.ljust(self._width) + ("\n" if end else ""))
        self._out.flush()
        self._width = len(text)


def line(rows: int, sent: int, seconds: float, total: int | None) -> str:
    """The text of the line.

    >>> line(50_000, 25_600_000, 2.0, 100_000)
    ' 50%  50,000/100,000 rows  25,000 rows/s  12.8 MB/s  2 s left'
    >>> line(50_000, 25_600_000, 2.0, None)
    '50,000 rows  25,000 rows/s  12.8 MB/s'
    """
    rate = rows / seconds if seconds > 0 else 0.0
    parts = [f"{rate:,.0f} rows/s", f"{sent / seconds / 1e6 if seconds > 0 else 0.0:,.1f} MB/s"]
    if not total:
        return "  ".join([f"{rows:,} rows", *parts])
    if 0 < rows < total and rate:
        parts.append(f"{(total - rows) / rate:,.0f} s left")
    return "  ".join([f"{100 * rows // total:3d}%", f"{rows:,}/{total:,} rows", *parts])
