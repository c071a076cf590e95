"""What peers print is read right, and ratios are taken round by round."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import kafka
import longbow_log
import numpy as np
import postgres
import pytest
import raw_disk
import report
import sqlite
from case import PIPELINED, Case, Figures, NotMeasured, Peer, Window, figures
from sqlite_callers import Turns

SHORT = Window(0.05, 0.3)


def peer(name: str) -> Peer:
    """One that is never asked."""
    return Peer(name, f"policy of {name}", lambda _case, _window: pytest.fail("measured"))


def test_figures_count_entries_of_commits_within_the_window() -> None:
    found = figures(np.arange(1, 101) * 1000, rows=10, seconds=2.0)
    assert found.entries_per_s == 100 * 10 / 2.0
    assert found.mb_per_s == pytest.approx(500 * 1024 / 1e6)
    assert (found.p50_ms, found.p99_ms) == (pytest.approx(50.5), pytest.approx(99.01))


def test_no_commit_is_not_measured_rather_than_zero() -> None:
    with pytest.raises(NotMeasured, match="not one commit ended within 2 s"):
        figures(np.array([]), 1, 2.0)


def test_pgbench_log_counts_only_what_ended_within_the_window() -> None:
    # The first began at 99.5 s, so the window of 2 s after a warm-up of 1 s is 100.5 .. 102.5.
    ends = [(100, 0), (100, 499_999), (100, 500_000), (102, 499_999), (102, 500_000)]
    taken = [500_000, 1, 2_000, 4_000, 1]
    log = np.array([[0, n, taken[n], 0, *end] for n, end in enumerate(ends)], dtype=float)
    found = postgres.in_window(log, rows=100, window=Window(1.0, 2.0))
    assert found.entries_per_s == 2 * 100 / 2.0
    assert found.p50_ms == pytest.approx(3.0)


def test_last_line_of_producer_performance_counts() -> None:
    printed = (
        "4096 records sent, 819.2 records/sec (0.80 MB/sec), 9.1 ms avg latency, 90.0 ms max latency.\n"
        "20000 records sent, 12345.6 records/sec (12.06 MB/sec), 21.50 ms avg latency, 301.00 ms max latency, "
        "20 ms 50th, 33 ms 95th, 78 ms 99th, 299 ms 99.9th.\n"
    )
    assert kafka.performance(printed) == Figures(12345.6, 20.0, 33.0, 78.0)
    with pytest.raises(NotMeasured, match="printed no result"):
        kafka.performance("usage: producer-performance\n")


def test_longbow_report_must_have_the_case_that_was_asked_for() -> None:
    row = {"callers": 10, "batch": 100, "mode": "blocking", "entries_per_s": 5000.0}
    row |= {"p50_us": 1500.0, "p95_us": 2500.0, "p99_us": 4000.0}
    printed = json.dumps({"rows": [row]})
    assert longbow_log.in_report(printed, Case(10, 100)) == Figures(5000.0, 1.5, 2.5, 4.0)
    with pytest.raises(NotMeasured, match="no row"):
        longbow_log.in_report(printed, Case(10, 1))


def test_ratio_is_the_median_of_the_rounds_own() -> None:
    case = Case(1, 1)
    ours = report.Rounds(peer("longbow"), case, [Figures(rate, 1, 1, 2) for rate in (100, 300, 200)])
    theirs = report.Rounds(peer("other"), case, [Figures(rate, 1, 1, 4) for rate in (100, 100, 400)])
    mine, other = report.rows([ours, theirs])
    assert "longbow_rate_ratio" not in mine
    assert (other["longbow_rate_ratio"], other["longbow_rate_ratio_range"]) == (1.0, [0.5, 3.0])
    assert other["longbow_p99_ratio"] == 0.5


def test_what_is_not_measured_says_why_in_its_row() -> None:
    case = Case(1, 1)
    ours = report.Rounds(peer("longbow"), case, [Figures(100, 1, 1, 2)])
    missing = report.Rounds(peer("other"), case, [], "no such package")
    found = report.rows([ours, missing])
    assert found[1]["not_measured"] == "no such package"
    machine = {"cpu": "c", "cores": 1, "memory_mb": 1, "kernel": "k", "file_system": "f", "commit": "0"}
    whole = {"machine": machine | {"load_before": 0}, "load_after": 0, "rounds": 1, "seconds": 1, "warmup": 1}
    printed = report.render(whole | {"rows": found})
    assert "not measured: no such package" in printed
    assert "policy of longbow" in printed


def test_turns_are_taken_in_the_order_of_asking() -> None:
    turns, order = Turns(), []
    threads = []
    with turns:
        for number in range(5):

            def take(number: int = number) -> None:
                with turns:
                    order.append(number)

            threads.append(threading.Thread(target=take))
            threads[-1].start()
            while len(turns.waiting) <= number:
                pass
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2, 3, 4]
    assert not turns.taken


def test_sqlite_is_loaded_by_callers_in_a_process_of_their_own(tmp_path: Path) -> None:
    with sqlite.peers(tmp_path) as (only,):
        found = only.measure(Case(3, 2), SHORT)
        assert found.entries_per_s > 0 and found.p50_ms <= found.p99_ms
        with pytest.raises(NotMeasured, match="one transaction after another"):
            only.measure(Case(1, 1000, PIPELINED), SHORT)
    assert list(tmp_path.iterdir()) == []


def test_raw_disk_wraps_around_and_removes_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_disk, "FILE_BYTES", 1 << 20)
    with raw_disk.peers(tmp_path) as (only,):
        found = only.measure(Case(3, 100), SHORT)
        assert (tmp_path / "raw").stat().st_size == 1 << 20
        assert found.entries_per_s > 0
        with pytest.raises(ValueError, match="more than the file"):
            only.measure(Case(100, 100), SHORT)
    assert list(tmp_path.iterdir()) == []
