"""The large run's data, and a small run of it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from confined import reads, resident_mb
from large_child import build, search
from mixture import K, Mixture, truth
from run_large import best, table

MIXTURE = Mixture(rows=45_000, dim=16, centres=60, queries=40)


def test_the_same_figures_make_the_same_rows(tmp_path: Path) -> None:
    MIXTURE.save(tmp_path / "mixture.json")
    again = Mixture.load(tmp_path / "mixture.json")
    pieces = list(zip(MIXTURE.chunks(), again.chunks(), strict=True))
    assert [first for (first, _), _ in pieces] == [0, 20_000, 40_000]
    assert all(np.array_equal(one, other) for (_, one), (_, other) in pieces)
    assert sum(len(rows) for (_, rows), _ in pieces) == MIXTURE.rows


def test_the_truth_is_that_of_a_sort() -> None:
    rows = np.concatenate([rows for _, rows in MIXTURE.chunks()]).astype(np.float64)
    for query, ids in zip(MIXTURE.questions(), truth(MIXTURE), strict=True):
        nearest = np.argsort(((rows - query) ** 2).sum(1))[:K]
        assert len(np.intersect1d(nearest, ids)) >= K - 1, "but for a tie by rounding"


def test_a_small_run(tmp_path: Path) -> None:
    limit, folder = 64 << 20, tmp_path / "data"
    built = build("longbow", MIXTURE, folder, limit)
    found = search("longbow", MIXTURE, folder, limit, truth(MIXTURE), confined=False)
    row = {"database": "longbow", **built, **found}
    assert row["points"][-1]["recall"] > 0.99
    assert row["files_mb"] > MIXTURE.rows * MIXTURE.dim * 4 / 2**20
    chosen = best(row["points"])
    assert chosen is not None and chosen["recall"] >= 0.95
    assert "| longbow |" in table([row]) and "exit 1" in table(
        [{"database": "x", "failed": "exit 1"}]
    )
    assert best([{"recall": 0.9, "searches_per_s": 1.0}]) is None


def test_the_system_tells_memory_and_reads() -> None:
    assert resident_mb()["anonymous_mb"] > 1
    assert min(reads()) >= 0
