"""What the rows of a set have besides their vectors, and its queries too: made once, kept as `attributes.npz` beside them.

| attribute | what it is |
|---|---|
| `label` | Fashion-MNIST: what is in the picture, 0 to 9; WordNet: the lexical file, 0 to 44; any other set: the nearest of ten rows |
| `rare` | a random number from 0 to 999, which has nothing to do with the vector: `rare < x` passes x thousandths |
| `part_of_speech` | WordNet: noun, verb, adjective, adverb, as 0 to 3 |
| `gloss_length` | WordNet: the letters of the definition and its examples |
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent / "ann"))

import data

Columns = dict[str, np.ndarray]
#: `rare` is below this.
RARE = 1_000
#: Of a set that has no classes of its own.
CELLS = 10
#: Against chance, `rare` must not repeat the choices that the sets were made by.
SEED = data.SEED + 1


@dataclass(frozen=True)
class Attributes:
    """Columns of int32, by name."""

    rows: Columns
    queries: Columns


def ensure(whole: data.DataSet, cache: Path, folder: Path) -> Path:
    """The file of the set in `folder`, which is `whole` or its first rows; made now if it is missing."""
    path = folder / "attributes.npz"
    if not path.exists():
        source = cache / whole.name
        rows = len(np.load(folder / "base.npy", mmap_mode="r"))
        if source == folder:
            made = _make(whole, folder)
        else:
            made = load(ensure(whole, cache, source))
        save(path, Attributes({name: column[:rows] for name, column in made.rows.items()}, made.queries))
    return path


def save(path: Path, made: Attributes) -> None:
    """Writes the file."""
    columns = {f"rows.{name}": column for name, column in made.rows.items()}
    columns |= {f"queries.{name}": column for name, column in made.queries.items()}
    np.savez(path, **{name: column.astype(np.int32) for name, column in columns.items()})


def load(path: Path) -> Attributes:
    """What the file holds."""
    found = Attributes({}, {})
    with np.load(path) as file:
        for name in file.files:
            side, column = name.split(".", 1)
            getattr(found, side)[column] = file[name]
    return found


def others(known: Attributes, field: str) -> np.ndarray:
    """For each query a value that is not its own: that of a row chosen at random, so frequent values are chosen often."""
    rng, values, own = np.random.default_rng(SEED), known.rows[field], known.queries[field]
    if (values == values[0]).all():
        raise ValueError(f"all rows have one {field}: there is no other")
    chosen = own.copy()
    while len(same := np.flatnonzero(chosen == own)):
        chosen[same] = values[rng.integers(len(values), size=len(same))]
    return chosen


def _make(whole: data.DataSet, folder: Path) -> Attributes:
    base, queries = (np.load(folder / f"{part}.npy", mmap_mode="r") for part in ("base", "queries"))
    makers = {"fashion-mnist": _clothes, "wordnet-minilm": _meanings}
    with tempfile.TemporaryDirectory(prefix="longbow-data-") as place:
        if make := makers.get(whole.name):
            made = make(Path(place))
        else:
            made = _cells(base, queries)
    for side, vectors in ((made.rows, base), (made.queries, queries)):
        if wrong := [name for name, column in side.items() if len(column) != len(vectors)]:
            raise data.NoData(f"{', '.join(wrong)} of {whole.name} is not of as many rows as its vectors")
    made.rows["rare"] = np.random.default_rng(SEED).integers(RARE, size=len(base))
    return made


def _clothes(place: Path) -> Attributes:
    files, _ = data.debian("dataset-fashion-mnist", place)
    images = files / "usr/share/datasets/fashion-mnist"
    rows = data.idx_labels(images / "train-labels-idx1-ubyte.gz")
    queries = data.idx_labels(images / "t10k-labels-idx1-ubyte.gz")
    return Attributes({"label": rows}, {"label": queries[: data.QUERIES]})


def _meanings(place: Path) -> Attributes:
    files, _ = data.debian("wordnet-base", place)
    synsets = list(data.wordnet(files / "usr/share/wordnet"))
    columns = {
        "label": np.array([int(synset.fields[1]) for synset in synsets]),
        "part_of_speech": np.array([data.WORDNET_PARTS.index(synset.part) for synset in synsets]),
        "gloss_length": np.array([len(synset.gloss) for synset in synsets]),
    }
    base, queries = data.held_out(len(synsets))
    rows, asked = ({name: column[of] for name, column in columns.items()} for of in (base, queries))
    return Attributes(rows, asked)


def _cells(base: np.ndarray, queries: np.ndarray) -> Attributes:
    anchors = base[np.sort(np.random.default_rng(SEED).choice(len(base), CELLS, replace=False))]
    squares = np.einsum("ij,ij->i", anchors, anchors)
    rows, asked = (
        {"label": (squares - 2 * (vectors @ anchors.T)).argmin(axis=1)} for vectors in (base, queries)
    )
    return Attributes(rows, asked)
