"""The rows at first, after a tenth was replaced, and after another tenth was deleted; and the true answers to each.

Replaced are the rows from 0 on: each gets the vector of the next one, so that the set is as it was and an old vector
is a wrong answer. Deleted are the last rows.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import truth

BUILT, REPLACED, DELETED = range(3)
NAMES = ("truth", "truth-replaced", "truth-deleted")


def changed(rows: int) -> int:
    """How many rows are replaced, and how many are deleted."""
    return rows // 10


def replacement(base: np.ndarray) -> np.ndarray:
    """The new vectors of the rows from 0 on."""
    return np.roll(base[: changed(len(base))], -1, axis=0)


def rows_of(base: np.ndarray, stage: int) -> np.ndarray:
    """The rows that there are at a stage; their places are their ids."""
    if stage == BUILT:
        return base
    now = np.concatenate([replacement(base), base[changed(len(base)) :]])
    return now if stage == REPLACED else now[: len(base) - changed(len(base))]


def ensure(folder: Path, metric: str) -> None:
    """Makes the true answers that are missing."""
    base, queries = np.load(folder / "base.npy", mmap_mode="r"), np.load(folder / "queries.npy")
    for stage in (REPLACED, DELETED):
        path = folder / f"{NAMES[stage]}.npy"
        if not path.exists():
            np.save(path, truth.nearest(rows_of(base, stage), queries, metric, depth=10))
