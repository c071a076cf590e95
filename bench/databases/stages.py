"""The rows at first, after a tenth was replaced, and after another tenth was deleted; and the true answers to each.

Replaced are the rows from 0 on: each gets a vector near that of the next one, so that the set is much as it was and an old
vector is a wrong answer. None is one that was there: an index may know it again, and have little to do. Deleted are the
last rows.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import truth

BUILT, REPLACED, DELETED = range(3)
NAMES = ("truth", "truth-renewed", "truth-renewed-deleted")
#: The part of a new vector that is of the next row; the rest is of the one behind that.
NEXT = 0.9


def changed(rows: int) -> int:
    """How many rows are replaced, and how many are deleted."""
    return rows // 10


def replacement(base: np.ndarray) -> np.ndarray:
    """The new vectors of the rows from 0 on, as long as those that they are near to: some sets are of one length."""
    rows = base[: changed(len(base))]
    near = np.roll(rows, -1, axis=0)
    mixed = NEXT * near + (1 - NEXT) * np.roll(rows, -2, axis=0)
    long, is_long = np.linalg.norm(near, axis=1), np.linalg.norm(mixed, axis=1)
    return (mixed * (long / np.maximum(is_long, 1e-9))[:, None]).astype(base.dtype)


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
