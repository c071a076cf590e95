"""The peers, each as one small class: build on rows, set the breadth of the search, search.

All run on one thread, keep float32 vectors unless the name says otherwise, and get unit vectors where the metric is cosine: there
squared L2 gives the same order. Parameters are those that the projects recommend for sets of this size; `sweep` runs from
below a recall of 0.9 to above 0.99 where the index gets there.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

GRAPH_SWEEP = (10, 13, 16, 20, 24, 32, 40, 48, 64, 96, 128, 192)
PROBE_SWEEP = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
# The best ten times k by their codes are compared exactly, and more of them where more lists are searched: a wide search
# with short codes finds no more otherwise.
REFINED, MOST_REFINED = 10, 40


def refined(probes: int) -> int:
    """Candidates that are compared exactly, for each neighbour asked for."""
    return max(REFINED, min(probes, MOST_REFINED))


class Adapter:
    """One index. `name` is the class's own; `settings` says what it was built with."""

    name: ClassVar[str]
    settings: ClassVar[str]
    sweep: ClassVar[tuple[int, ...]] = GRAPH_SWEEP

    def build(self, base: np.ndarray, metric: str) -> None:
        """Takes all rows; row numbers are their places."""
        raise NotImplementedError

    def effort(self, breadth: int) -> None:
        """How hard the searches after this look."""
        raise NotImplementedError

    def search(self, queries: np.ndarray, k: int) -> Any:
        """Row numbers of the `k` nearest for each row of `queries`, in one call."""
        raise NotImplementedError

    def saved_bytes(self) -> int | None:
        """Bytes of the index as it saves itself, vectors included; None if it does not tell."""
        return None


class Hnswlib(Adapter):
    """The reference implementation of HNSW (Malkov and Yashunin, 2016)."""

    name = "hnswlib"
    settings = "M=16, ef_construction=200, built with -march=native"

    def build(self, base: np.ndarray, metric: str) -> None:
        import hnswlib

        self.index = hnswlib.Index(space="l2", dim=base.shape[1])
        self.index.init_index(max_elements=len(base), M=16, ef_construction=200, random_seed=42)
        self.index.set_num_threads(1)
        self.index.add_items(base, num_threads=1)

    def effort(self, breadth: int) -> None:
        self.index.set_ef(breadth)

    def search(self, queries: np.ndarray, k: int) -> Any:
        return self.index.knn_query(queries, k=k, num_threads=1)[0]

    def saved_bytes(self) -> int | None:
        return file_bytes(lambda path: self.index.save_index(str(path)))


class Faiss(Adapter):
    """An index of faiss (Douze et al., 2024) by the string of its factory."""

    knob: ClassVar[str] = "nprobe"
    sweep = PROBE_SWEEP

    def factory(self, rows: int, dim: int) -> str:
        """The string."""
        raise NotImplementedError

    def build(self, base: np.ndarray, metric: str) -> None:
        import faiss

        faiss.omp_set_num_threads(1)
        self.faiss, self.parameters = faiss, faiss.ParameterSpace()
        self.index = faiss.index_factory(base.shape[1], self.factory(*base.shape))
        self.configure()
        self.index.train(base)
        self.index.add(base)

    def configure(self) -> None:
        """Sets what the string cannot say, before the build."""

    def effort(self, breadth: int) -> None:
        self.parameters.set_index_parameter(self.index, self.knob, breadth)

    def search(self, queries: np.ndarray, k: int) -> Any:
        return self.index.search(queries, k)[1]

    def saved_bytes(self) -> int | None:
        return file_bytes(lambda path: self.faiss.write_index(self.index, str(path)))


def lists(rows: int) -> int:
    """Inverted lists: a power of two near the root of the rows, up to four times that."""
    return 256 if rows < 80_000 else 1024


class FaissHnsw(Faiss):
    """Its graph over plain vectors."""

    name = "faiss-hnsw"
    settings = "HNSW32,Flat, efConstruction=200"
    sweep = GRAPH_SWEEP
    knob = "efSearch"

    def factory(self, rows: int, dim: int) -> str:
        return "HNSW32,Flat"

    def configure(self) -> None:
        self.index.hnsw.efConstruction = 200


class FaissLists(Faiss):
    """Inverted lists of codes, and the vectors to compare the best of them exactly."""

    def effort(self, breadth: int) -> None:
        super().effort(breadth)
        self.index.k_factor = refined(breadth)


class FaissPq(FaissLists):
    """Inverted lists of product codes of 4 bits, scanned in registers (Andre et al., 2015), the best compared exactly."""

    name = "faiss-ivfpqfs"
    settings = (
        "IVF256 or 1024 from 80,000 rows, PQx4fs of d/2 (above 400 dimensions d/4), RFlat, k_factor 10 to 40"
    )

    def factory(self, rows: int, dim: int) -> str:
        return f"IVF{lists(rows)},PQ{dim // 2 if dim <= 400 else dim // 4}x4fs,RFlat"


class FaissRabitq(FaissLists):
    """Inverted lists of RaBitQ codes of 1 bit (Gao and Long, 2024), the best compared exactly."""

    name = "faiss-ivfrabitqfs"
    settings = "IVF256 or 1024 from 80,000 rows, RaBitQfs, RFlat, k_factor 10 to 40"

    def factory(self, rows: int, dim: int) -> str:
        return f"IVF{lists(rows)},RaBitQfs,RFlat"


class Usearch(Adapter):
    """Another HNSW."""

    name = "usearch"
    settings = "connectivity 16, expansion_add 200, f32"

    def build(self, base: np.ndarray, metric: str) -> None:
        from usearch.index import Index

        self.index = Index(ndim=base.shape[1], metric="l2sq", dtype="f32", connectivity=16, expansion_add=200)
        self.index.add(np.arange(len(base)), base, threads=1)

    def effort(self, breadth: int) -> None:
        self.index.expansion_search = breadth

    def search(self, queries: np.ndarray, k: int) -> Any:
        # A single row is handed over as a vector, for which it has a shorter way.
        found = self.index.search(queries[0] if len(queries) == 1 else queries, k, threads=1)
        return found.keys

    def saved_bytes(self) -> int | None:
        return int(self.index.serialized_length)


class Symqg(Adapter):
    """A graph with RaBitQ codes of the neighbours in each node (SymphonyQG; Gou et al., 2025), by the authors' library."""

    name = "symqg"
    settings = "R=32, ef_construction=200, f32 vectors"
    sweep = (10, 13, 16, 20, 24, 32, 40, 48, 64, 96, 128, 192, 256)
    bits: ClassVar[int] = 0

    def build(self, base: np.ndarray, metric: str) -> None:
        import rabitqlib

        self.index = rabitqlib.SymqgIndex(base.shape[1], 32, "l2", self.bits)
        self.index.build(base, 200, num_threads=1)

    def effort(self, breadth: int) -> None:
        self.breadth = breadth

    def search(self, queries: np.ndarray, k: int) -> Any:
        if len(queries) == 1:
            return self.index.search(queries, k, self.breadth, num_threads=1)[0]
        return self.index.search_batch(queries, k, self.breadth, num_threads=1)[0]

    def saved_bytes(self) -> int | None:
        return file_bytes(lambda path: self.index.save(str(path)))


class Symqg8(Symqg):
    """The same with vectors of 8 bits, none of them compared exactly."""

    name = "symqg-8bit"
    settings = "R=32, ef_construction=200, 8-bit vectors"
    bits = 8


class Scann(Adapter):
    """Lists of anisotropic product codes (Guo et al., 2020), the best compared exactly."""

    name = "scann"
    settings = "256 leaves or 1000 from 80,000 rows, AH of 2 dimensions, threshold 0.2, reorder 100 to 400"
    sweep = PROBE_SWEEP

    def build(self, base: np.ndarray, metric: str) -> None:
        from scann.scann_ops.py import scann_ops_pybind

        leaves = 256 if len(base) < 80_000 else 1000
        distance = "dot_product" if metric == "cosine" else "squared_l2"
        builder = scann_ops_pybind.builder(base, 10, distance).set_n_training_threads(1)
        tree = builder.tree(
            num_leaves=leaves, num_leaves_to_search=leaves // 10, training_sample_size=len(base)
        )
        coded = tree.score_ah(2, anisotropic_quantization_threshold=0.2)
        self.index = coded.reorder(100).build()

    def effort(self, breadth: int) -> None:
        self.breadth = breadth

    def search(self, queries: np.ndarray, k: int) -> Any:
        how = {
            "leaves_to_search": self.breadth,
            "pre_reorder_num_neighbors": k * refined(self.breadth),
        }
        if len(queries) == 1:
            return self.index.search(queries[0], final_num_neighbors=k, **how)[0]
        return self.index.search_batched(queries, final_num_neighbors=k, **how)[0]

    def saved_bytes(self) -> int | None:
        with tempfile.TemporaryDirectory(prefix="ann-") as folder:
            self.index.serialize(folder)
            return sum(path.stat().st_size for path in Path(folder).rglob("*"))


ALL: tuple[type[Adapter], ...] = (Hnswlib, Symqg, Symqg8, FaissHnsw, FaissPq, FaissRabitq, Usearch, Scann)


def file_bytes(save: Any) -> int:
    """How long the file is that `save(path)` writes."""
    with tempfile.TemporaryDirectory(prefix="ann-") as folder:
        path = Path(folder) / "index"
        save(path)
        return path.stat().st_size
