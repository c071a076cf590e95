"""faiss with its inverted lists, and the vectors in them, in a file that it maps: ``IndexIVFFlat`` over ``OnDiskInvertedLists``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from mixture import K

#: Lists for the square root of the rows, vectors of each that centroids are trained by, and rows that are added at a time.
LISTS, TRAINED_BY, PIECE = 2, 40, 250_000


class FaissOnDisk:
    """Efforts are the lists that are read; distances are exact."""

    efforts = (1, 2, 4, 8, 16, 32, 64, 128)

    def __init__(self, folder: Path) -> None:
        import faiss

        self.faiss, self.folder = faiss, folder
        whole = folder / "whole.index"
        self.index = faiss.read_index(str(whole)) if whole.exists() else None
        self.shape = (0, 0)

    def add(self, ids: np.ndarray, rows: np.ndarray) -> None:
        """Keeps rows in a file until the lists are made: centroids must be trained before the first is added."""
        with (self.folder / "rows.f32").open("ab") as file:
            rows.astype(np.float32).tofile(file)
        self.shape = (int(ids[-1]) + 1, rows.shape[1])

    def index_rows(self) -> None:
        from faiss.contrib.ondisk import merge_ondisk

        rows = np.memmap(self.folder / "rows.f32", np.float32, "r", shape=self.shape)
        lists = max(1, int(LISTS * len(rows) ** 0.5))
        index = self.faiss.index_factory(rows.shape[1], f"IVF{lists},Flat")
        sample = np.random.default_rng(7).choice(
            len(rows), min(len(rows), TRAINED_BY * lists), replace=False
        )
        index.train(rows[np.sort(sample)])
        trained = self.folder / "trained.index"
        self.faiss.write_index(index, str(trained))
        pieces = []
        for first in range(0, len(rows), PIECE):
            piece = self.faiss.read_index(str(trained))
            some = np.ascontiguousarray(rows[first : first + PIECE])
            piece.add_with_ids(some, np.arange(first, first + len(some)))
            pieces.append(str(self.folder / f"piece-{first}.index"))
            self.faiss.write_index(piece, pieces[-1])
        index = self.faiss.read_index(str(trained))
        merge_ondisk(index, pieces, str(self.folder / "lists.ivfdata"))
        self.faiss.write_index(index, str(self.folder / "whole.index"))
        for path in [*map(Path, pieces), trained, self.folder / "rows.f32"]:
            path.unlink()

    def ready(self) -> None:
        """Nothing is left to be read before a search."""

    def search(self, query: np.ndarray, effort: Any) -> np.ndarray:
        self.index.nprobe = effort
        found: np.ndarray = self.index.search(query[None], K)[1][0]
        return found

    def sizes(self, folder: Path, rows: int) -> dict[str, float]:
        return {"block_bytes_a_row": (folder / "lists.ivfdata").stat().st_size / rows}

    def close(self) -> None:
        """Whoever ends the process closes it."""
