#!/usr/bin/env python3
"""The three sets of vectors, made once and kept: base, held-out queries, and their true nearest neighbours.

    .venv-ann/bin/python bench/ann/data.py [--cache FOLDER] [--only synth128]

Each set is a folder with `base.npy` and `queries.npy` (float32), `truth.npy` (int32, 100 row numbers a query, nearest
first) and `about.json`. What is there already is left alone.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import truth

CACHE = Path.home() / ".cache" / "longbow-bench"
QUERIES = 1000
SEED = 42
WORDNET_PARTS = ("noun", "verb", "adj", "adv")


class NoData(Exception):
    """A set that cannot be made here; the text says why."""


@dataclass(frozen=True)
class Vectors:
    """What a set consists of, before the truth is known."""

    base: np.ndarray
    queries: np.ndarray
    source: str


@dataclass(frozen=True)
class DataSet:
    """A set by its name, and how it is made; `make` is handed a folder for what it needs on the way."""

    name: str
    metric: str
    make: Callable[[Path], Vectors]


def debian(package: str, folder: Path) -> tuple[Path, str]:
    """A package's files, unpacked but not installed, and its version."""
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise NoData(f"{package} is a package of Debian, and there is no {tool} here")
    got = subprocess.run(
        ["apt-get", "download", "-q", package], cwd=folder, check=False, capture_output=True, text=True
    )
    found = sorted(folder.glob(f"{package}_*.deb"))
    if got.returncode != 0 or not found:
        raise NoData(
            f"apt-get download {package} failed (apt-get update may help): {got.stderr.strip()[-300:]}"
        )
    files = folder / package
    subprocess.run(["dpkg-deb", "-x", found[-1], files], check=True)
    return files, f"{package} {found[-1].name.split('_')[1].replace('%3a', ':')}"


def idx_images(path: Path) -> np.ndarray:
    """A gzipped idx file of bytes as float32 rows: big-endian magic 0x803, count, height, width, then the bytes."""
    raw = gzip.decompress(path.read_bytes())
    magic, count, height, width = np.frombuffer(raw, dtype=">u4", count=4)
    if magic != 0x803 or len(raw) != 16 + int(count) * int(height) * int(width):
        raise NoData(f"{path.name} is not an idx file of images")
    return np.frombuffer(raw, dtype=np.uint8, offset=16).reshape(count, -1).astype(np.float32)


def fashion_mnist(folder: Path) -> Vectors:
    """Images of clothes (Xiao et al., 2017): 60,000 x 784 pixels of 0 to 255, and the first test images as queries."""
    files, version = debian("dataset-fashion-mnist", folder)
    images = files / "usr/share/datasets/fashion-mnist"
    base = idx_images(images / "train-images-idx3-ubyte.gz")
    queries = idx_images(images / "t10k-images-idx3-ubyte.gz")
    return Vectors(base, queries[:QUERIES], version)


def idx_labels(path: Path) -> np.ndarray:
    """A gzipped idx file of labels: big-endian magic 0x801, count, then a byte each."""
    raw = gzip.decompress(path.read_bytes())
    magic, count = np.frombuffer(raw, dtype=">u4", count=2)
    if magic != 0x801 or len(raw) != 8 + int(count):
        raise NoData(f"{path.name} is not an idx file of labels")
    return np.frombuffer(raw, dtype=np.uint8, offset=8).astype(np.int32)


@dataclass(frozen=True)
class Synset:
    """A meaning of WordNet: the file that it stands in, the fields before its gloss (wndb(5WN)), and its gloss."""

    part: str
    fields: list[str]
    gloss: str


def wordnet(folder: Path) -> Iterator[Synset]:
    """Every synset, in the order of the files."""
    for part in WORDNET_PARTS:
        for line in (folder / f"data.{part}").read_text(encoding="latin-1").splitlines():
            if line.startswith("  "):
                continue  # The licence, at the top of each file.
            head, gloss = line.split(" | ", 1)
            yield Synset(part, head.split(), gloss.strip())


def wordnet_texts(folder: Path) -> list[str]:
    """Every synset as a text: its words, then its gloss with examples."""
    texts = []
    for synset in wordnet(folder):
        fields = synset.fields
        words = (fields[4 + 2 * n].split("(")[0].replace("_", " ") for n in range(int(fields[3], 16)))
        texts.append(f"{', '.join(words)}: {synset.gloss}")
    return texts


def held_out(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Which of so many vectors are the base, and which are the queries, in order."""
    order = np.random.default_rng(SEED).permutation(count)
    return order[QUERIES:], order[:QUERIES]


def wordnet_minilm(folder: Path) -> Vectors:
    """All meanings of WordNet 3.0 as sentence embeddings of 384 dimensions; the queries are held out at random."""
    try:
        import minilm  # Its packages are needed for this set alone.
    except ImportError as error:
        raise NoData(f"cannot embed: {error}") from error
    files, version = debian("wordnet-base", folder)
    texts = wordnet_texts(files / "usr/share/wordnet")
    began = time.monotonic()

    told = 0

    def progress(done: int) -> None:
        nonlocal told
        if done - told >= 10_000:
            told = done
            print(
                f"  {done:,} of {len(texts):,} texts, {time.monotonic() - began:.0f} s",
                file=sys.stderr,
                flush=True,
            )

    threads = int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0)))
    vectors = minilm.vectors(texts, folder / "minilm.onnx", threads, progress)
    base, queries = held_out(len(vectors))
    return Vectors(vectors[base], vectors[queries], f"{version}, {minilm.embed.PACKAGE}")


def synth128(_: Path, rows: int = 100_000, dim: int = 128) -> Vectors:
    """A mixture of 1000 Gaussians: the same everywhere, and kind to indexes that cluster."""
    rng = np.random.default_rng(SEED)
    centres = rng.standard_normal((1000, dim), dtype=np.float32)
    of = rng.integers(len(centres), size=rows + QUERIES)
    points = centres[of] + np.float32(0.7) * rng.standard_normal((rows + QUERIES, dim), dtype=np.float32)
    return Vectors(points[:rows], points[rows:], f"1000 Gaussians, sd 0.7, seed {SEED}")


SETS = (
    DataSet("synth128", truth.EUCLIDEAN, synth128),
    DataSet("fashion-mnist", truth.EUCLIDEAN, fashion_mnist),
    DataSet("wordnet-minilm", truth.COSINE, wordnet_minilm),
)


def ensure(wanted: DataSet, cache: Path) -> Path:
    """The set's folder, made now if it is missing. `about.json` is written last: without it a folder is made anew."""
    folder = cache / wanted.name
    if (folder / "about.json").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    print(f"making {folder}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="longbow-data-") as place:
        made = wanted.make(Path(place))
    base, queries = (np.ascontiguousarray(part, dtype=np.float32) for part in (made.base, made.queries))
    np.save(folder / "base.npy", base)
    np.save(folder / "queries.npy", queries)
    np.save(folder / "truth.npy", truth.nearest(base, queries, wanted.metric))
    rows, dim = base.shape
    about = {"name": wanted.name, "metric": wanted.metric, "rows": rows, "dim": dim, "source": made.source}
    (folder / "about.json").write_text(json.dumps({**about, "queries": len(queries)}, indent=2) + "\n")
    return folder


def beginning(whole: DataSet, folder: Path, rows: int) -> DataSet:
    """The set of only the first rows of one that was made in `folder`, with the same queries."""
    source = f"the first {rows} rows of {whole.name}"

    def make(_: Path) -> Vectors:
        return Vectors(np.load(folder / "base.npy")[:rows], np.load(folder / "queries.npy"), source)

    return DataSet(f"{whole.name}-{rows}", whole.metric, make)


def by_names(text: str) -> list[DataSet]:
    """The sets that a list of names asks for."""
    known = {each.name: each for each in SETS}
    if unknown := [name for name in text.split(",") if name not in known]:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
    return [known[name] for name in text.split(",")]


def main() -> int:
    """Makes what is missing."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--cache", type=Path, default=CACHE, help="default %(default)s")
    arguments.add_argument("--only", type=by_names, default=list(SETS), metavar="A,B")
    args = arguments.parse_args()
    failed = 0
    for each in args.only:
        try:
            print((ensure(each, args.cache) / "about.json").read_text(), end="")
        except NoData as error:
            failed = 1
            print(f"{each.name}: {error}", file=sys.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main())
