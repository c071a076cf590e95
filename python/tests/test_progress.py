"""The progress line, on a clock of the test's own."""

import io

import pytest

from longbow.progress import Line, reporter


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_line_is_redrawn_in_place_and_not_too_often() -> None:
    out, clock = io.StringIO(), Clock()
    line = Line(out, 1000, clock)
    clock.now = 0.05
    line.show(100, 1_000_000, False)
    assert out.getvalue() == ""
    clock.now = 0.5
    line.show(500, 5_000_000, False)
    clock.now = 0.55
    line.show(550, 5_500_000, False)
    assert out.getvalue().count("\r") == 1
    assert "50%  500/1,000 rows  1,000 rows/s  10.0 MB/s" in out.getvalue()
    clock.now = 1.0
    line.show(1000, 10_000_000, True)
    last = out.getvalue().rsplit("\r", 1)[1]
    assert last.startswith("100%  1,000/1,000 rows") and last.endswith("\n")


def test_a_shorter_line_covers_a_longer_one() -> None:
    out, clock = io.StringIO(), Clock()
    line = Line(out, 1000, clock)
    clock.now = 1.0
    line.show(999, 10, False)
    clock.now = 2.0
    line.show(1000, 10, True)
    first, last = out.getvalue().split("\r")[1:]
    assert len(last.rstrip("\n")) >= len(first)


def test_a_function_is_told_rows_and_total() -> None:
    told = []
    report = reporter(lambda rows, total: told.append((rows, total)), 20)
    report(10, 100, False)
    report(20, 200, True)
    assert told == [(10, 20), (20, 20)]


@pytest.mark.parametrize(
    "progress, terminal, total, shown",
    [
        (True, False, 10, True),
        (False, True, 10**6, False),
        (None, True, 10**6, True),
        (None, True, None, True),
        (None, True, 10, False),
        (None, False, 10**6, False),
    ],
)
def test_by_default_a_terminal_and_many_rows(progress, terminal, total, shown, monkeypatch) -> None:
    class Stream(io.StringIO):
        def isatty(self) -> bool:
            return terminal

    stream = Stream()
    monkeypatch.setattr("sys.stderr", stream)
    reporter(progress, total)(10, 100, True)
    assert bool(stream.getvalue()) is shown
