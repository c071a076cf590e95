"""The filters that databases are searched with, by name, and the true answers under each.

A number is a share of the rows in per cent, chosen by `rare`, which has nothing to do with the vectors. `opposed` is
another label than the query's own, that of a row chosen at random: what passes is elsewhere than what is near.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import attributes
import filtered_truth
import numpy as np
from condition import Condition

OPPOSED = "opposed"
DEFAULT = "0.1,1,10,50,90,opposed"
#: What databases keep with a row.
KEPT = ("label", "rare")


def names(text: str) -> list[str]:
    """The names in a list, for the command line."""
    found = text.split(",")
    for name in found:
        if name != OPPOSED and _thousandths(name) is None:
            raise argparse.ArgumentTypeError(f"{name} is neither {OPPOSED} nor tenths of per cent below 100")
    return found


def _thousandths(name: str) -> int | None:
    try:
        share = round(10 * float(name))
    except ValueError:
        return None
    return share if 0 < share < attributes.RARE and abs(share - 10 * float(name)) < 1e-9 else None


def conditions(name: str, known: attributes.Attributes) -> list[Condition]:
    """The filter of each query."""
    if name != OPPOSED:
        return [Condition("rare", "<", _thousandths(name) or 0)] * len(known.queries["label"])
    return [Condition("label", "=", int(label)) for label in attributes.others(known, "label")]


def truth_path(folder: Path, name: str) -> Path:
    """Where the true answers are kept."""
    return folder / f"truth-filter-{name}.npy"


def ensure(folder: Path, metric: str, wanted: list[str]) -> None:
    """Makes the true answers that are missing; the attributes are there."""
    known = attributes.load(folder / "attributes.npz")
    base, queries = np.load(folder / "base.npy", mmap_mode="r"), np.load(folder / "queries.npy")
    for name in wanted:
        path = truth_path(folder, name)
        if not path.exists():
            asked = conditions(name, known)
            np.save(path, filtered_truth.nearest(base, queries, asked, known.rows, metric))
