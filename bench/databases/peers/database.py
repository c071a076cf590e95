"""What every adapter does."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from condition import Condition

K = 10
Columns = dict[str, np.ndarray]


class Database:
    """One database on a folder of its own, spoken to by one client thread. Ids are 0, 1, 2, …

    `attributes` are columns of int32 that rows have besides their vectors, for all ids; each is indexed where that can be
    asked for.
    """

    #: The packages whose versions are told.
    packages: ClassVar[tuple[str, ...]] = ()
    #: What it was set to.
    settings: ClassVar[str] = ""
    #: What an answered insert means.
    acknowledged: ClassVar[str] = ""
    #: Rows an insert.
    batch: ClassVar[int] = 1_000
    #: How hard a search looks, from little to much.
    sweep: ClassVar[tuple[int, ...]] = (10, 16, 24, 32, 48, 64, 96, 128, 192, 256, 400)

    def __init__(self, folder: Path, dim: int, metric: str, attributes: Columns | None = None) -> None:
        self.folder, self.dim, self.metric = folder, dim, metric
        self.attributes = attributes or {}

    def columns(self, first: int, count: int) -> Columns:
        """The attributes of so many rows, from an id on."""
        return {name: column[first : first + count] for name, column in self.attributes.items()}

    def create(self, rows: int) -> None:
        """Makes it, empty; `rows` is how many will come."""
        raise NotImplementedError

    def open(self) -> None:
        """Opens what was closed."""
        raise NotImplementedError

    def insert(self, first: int, vectors: np.ndarray) -> None:
        """Adds rows of new ids, from `first` on; acknowledged when it returns."""
        raise NotImplementedError

    def index(self) -> None:
        """Returns when every row is in the index."""

    def effort(self, breadth: int) -> None:
        """How hard the searches after this look. Not timed."""
        raise NotImplementedError

    def search(self, query: np.ndarray) -> Any:
        """Ids of the nearest rows."""
        raise NotImplementedError

    def search_where(self, query: np.ndarray, condition: Condition) -> Any:
        """Ids of the nearest rows that pass; the condition is sent with the call."""
        raise NotImplementedError

    def search_many(self, queries: np.ndarray) -> Any:
        """Ids of the nearest rows of each query, in one call; None if there is no such call."""
        return None

    def replace(self, first: int, vectors: np.ndarray) -> None:
        """Gives known ids other vectors, from `first` on."""
        raise NotImplementedError

    def delete(self, first: int, count: int) -> None:
        """Deletes rows by their ids."""
        raise NotImplementedError

    def close(self) -> None:
        """Closes it; the folder stays."""

    def end(self) -> None:
        """Ends processes that it started, whatever state they are in."""

    def pids(self) -> list[int]:
        """The processes whose memory is its own."""
        return [os.getpid()]
