"""What the reader sees: headings, answers, figures and a progress bar, in plain terminal text.

Colour and redrawn lines only on a terminal; a file or a pipe gets the same words without them.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import time

if isinstance(sys.stdout, io.TextIOWrapper):
    # A sign that the terminal does not know is no reason to stop.
    sys.stdout.reconfigure(errors="replace")
WIDTH = max(60, min(110, shutil.get_terminal_size((96, 24)).columns))
LIVE = sys.stdout.isatty()
COLOUR = LIVE and "NO_COLOR" not in os.environ
UNICODE = "utf" in (sys.stdout.encoding or "").lower()
CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
BAR = 28


def paint(text: str, *styles: str) -> str:
    """The text in these styles, or as it is where there is no colour."""
    if not COLOUR:
        return text
    return f"\033[{';'.join(CODES[style] for style in styles)}m{text}\033[0m"


def mark(good: bool) -> str:
    """A tick or a cross."""
    if good:
        return paint("✔" if UNICODE else "ok", "green", "bold")
    return paint("✘" if UNICODE else "NO", "red", "bold")


def fit(text: str, width: int) -> str:
    """The text in exactly this many columns, cut with a mark or filled up with blanks."""
    if len(text) > width:
        text = text[: width - 1] + ("…" if UNICODE else ".")
    return text.ljust(width)


def say(text: str = "") -> None:
    """A line, shown at once."""
    print(text, flush=True)


def title(name: str, what: str) -> None:
    """The head of it all."""
    say()
    say(f"  {paint(name, 'bold', 'cyan')}  {what}")
    say(f"  {paint(('─' if UNICODE else '-') * (WIDTH - 4), 'dim')}")


class Steps:
    """Numbered headings."""

    def __init__(self) -> None:
        self._number = 0

    def next(self, text: str) -> None:
        """The heading of the next step."""
        self._number += 1
        say()
        say(f"  {paint(str(self._number), 'bold', 'cyan')}  {paint(text, 'bold')}")


def note(text: str) -> None:
    """A line under the heading."""
    say(f"     {text}")


def figure(name: str, value: str, good: bool | None = None, wanted: str = "") -> None:
    """A measured figure, with a mark where there is a promise to compare it with."""
    line = f"     {name:<46}{paint(value, 'bold')}"
    if good is not None:
        line += f"  {mark(good)}" + (f"  {paint(wanted, 'dim')}" if wanted else "")
    say(line)


def answers(question: str, rows: list[dict], expected: str | None, extra: str = "") -> None:
    """The answers to one description; the row with the expected word is marked."""
    say()
    quotes = ("“", "”") if UNICODE else ('"', '"')
    say(f"     {paint(quotes[0] + question + quotes[1], 'yellow')}{paint(extra, 'dim')}")
    for rank, row in enumerate(rows, 1):
        hit = expected is not None and expected in row["lemmas"]
        word = fit(", ".join(row["lemmas"]), 26)
        gloss = fit(row["gloss"], WIDTH - 51).rstrip()
        shown = paint(word, "bold", "green") if hit else word
        line = f"     {rank:>2}  {shown}  {row['score']:.3f}  {paint(gloss, 'dim')}"
        say(line + (f"  {mark(True)}" if hit else ""))


class Bar:
    """A bar that fills as rows are sent; call it with the rows so far and the total."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._line = ""

    def __call__(self, rows: int, total: int | None) -> None:
        whole = total or max(rows, 1)
        full = BAR * rows // whole
        blocks = ("█", "░") if UNICODE else ("#", ".")
        rate = rows / max(time.monotonic() - self._start, 1e-6)
        bar = paint(blocks[0] * full, "green") + paint(blocks[1] * (BAR - full), "dim")
        self._line = f"     {bar}  {rows:,} of {whole:,} rows  {rate:,.0f} rows/s"
        if LIVE:
            print(f"\r{self._line}", end="", flush=True)

    def end(self) -> None:
        """Leaves the last line standing."""
        say("" if LIVE else self._line)
