"""Full text beside bm25s: the same rows and the same scores on a file of texts, one a line.

    python bench/text_scores.py TEXTS.txt [--queries 200] [--example target/release/examples/text]

Needs `bm25s` and `numpy`, and the example from `cargo build --release -p longbow-engine --example text`. Fails if a list of
ten rows differs or a score by more than 1e-4.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import bm25s
import numpy as np

BEST = 10
CLOSE = 1e-4


def tokens(text: str) -> list[str]:
    """Runs of letters and digits in lower case, as the tokenizer `default` cuts them."""
    return [word.lower() for word in re.findall(r"[^\W_]+", text)]


def make_queries(texts: list[list[str]], count: int) -> list[str]:
    """Queries of one to six words of one text, each query once."""
    chance = random.Random(7)
    queries: dict[str, None] = {}
    while len(queries) < count:
        words = [word for word in chance.choice(texts) if word.isascii()]
        if words:
            queries[" ".join(chance.choices(words, k=chance.randint(1, 6)))] = None
    return list(queries)


def search(example: Path, texts: Path, queries: list[str]) -> dict[str, list[tuple[int, float]]]:
    """The rows that the engine finds, with their scores, by query. Its figures go to the terminal."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".txt") as file:
        file.write("\n".join(queries) + "\n")
        file.flush()
        command = [str(example), str(texts), file.name]
        out = subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout
    found = defaultdict(list)
    for line in out.splitlines():
        query, row, score = line.split("\t")
        found[query].append((int(row), float(score)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--example", type=Path, default=Path("target/release/examples/text"))
    args = parser.parse_args()
    texts = [tokens(line) for line in args.texts.read_text(encoding="utf-8").splitlines()]
    queries = make_queries(texts, args.queries)
    found = search(args.example, args.texts, queries)

    numbers: dict[str, int] = {}
    ids = [[numbers.setdefault(word, len(numbers)) for word in words] for words in texts]
    peer = bm25s.BM25(method="lucene", k1=1.2, b=0.75, dtype="float64")
    peer.index((ids, numbers), show_progress=False)
    worst, different, took = 0.0, 0, 0.0
    for query in queries:
        words = [numbers[word] for word in tokens(query) if word in numbers]
        began = time.perf_counter()
        scores = np.asarray(peer.get_scores_from_ids(words))
        took += time.perf_counter() - began
        # Of equals as single precision shows them, the first row comes first.
        order = np.lexsort((np.arange(len(scores)), -scores.astype(np.float32)))[:BEST]
        expected = [int(row) for row in order if scores[row] > 0]
        different += [row for row, _ in found[query]] != expected
        worst = max([worst] + [abs(score - scores[row]) for row, score in found[query]])
    print(f"{len(queries)} queries: {different} lists differ, the worst score by {worst:.1e}")
    print(f"bm25s takes {took / len(queries) * 1e6:.0f} µs a query for the scores alone")
    if different or worst > CLOSE:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
