#!/usr/bin/env python3
"""nDCG@10 of the demo's 200 descriptions by vector alone, by words alone, and by both.

    .venv/bin/python bench/hybrid_ndcg.py [--json FILE|-]

Relevant are all meanings of the word that a description was written for (gain 1 each). The words are searched in the
definitions (BM25), the vectors are those of the definitions. Exits with 1 if weighted fusion with an alpha
of 0.9 is not better than both of its parts: words alone find little here, so they must not count as much as vectors.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import longbow

DATA = Path(__file__).resolve().parent.parent / "demo" / "data"
K = 10
BEST = "weighted, alpha 0.9"


def ndcg(found: list[int], relevant: set[int]) -> float:
    """Of one answer, where each relevant row counts 1."""
    gain = sum(
        1 / math.log2(place + 2)
        for place, row in enumerate(found[:K])
        if row in relevant
    )
    ideal = sum(1 / math.log2(place + 2) for place in range(min(K, len(relevant))))
    return gain / ideal


def measure() -> dict[str, float]:
    """The mean nDCG@10 of each way."""
    rows, queries = (
        pq.read_table(DATA / "wordnet.parquet"),
        pq.read_table(DATA / "queries.parquet"),
    )
    meanings: dict[str, set[int]] = {}
    for row, lemmas in zip(rows["id"].to_pylist(), rows["lemmas"].to_pylist()):
        for lemma in lemmas:
            meanings.setdefault(lemma.lower(), set()).add(row)
    ways: dict[str, dict[str, object]] = {
        "vector": {"alpha": 1.0},
        "words": {"alpha": 0.0},
        "rrf": {},
        "rrf, alpha 0.9": {"alpha": 0.9},
        "rrf, alpha by length": {"alpha": -1.0},
        "weighted, alpha 0.5": {"fusion": "weighted"},
        BEST: {"alpha": 0.9, "fusion": "weighted"},
        "weighted, alpha by length": {"alpha": -1.0, "fusion": "weighted"},
    }
    sums = dict.fromkeys(ways, 0.0)
    with longbow.open() as db:
        db.insert("words", rows.drop_columns(["lemmas"]))
        db.wait_until_indexed("words")
        for query in queries.to_pylist():
            relevant = {query["id"]} | meanings.get(str(query["word"]).lower(), set())
            for name, asked in ways.items():
                told: pa.Table = db.search(
                    "words",
                    query["vector"],
                    K,
                    text_query=query["text"],
                    text_columns=["gloss"],
                    **asked,
                )
                sums[name] += ndcg(told["id"].to_pylist(), relevant)
    return {name: round(total / len(queries), 4) for name, total in sums.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", help="file for the figures, or -")
    told = measure()
    arguments = parser.parse_args()
    text = json.dumps({"queries": 200, "k": K, "ndcg": told}, indent=2)
    if arguments.json and arguments.json != "-":
        Path(arguments.json).write_text(text + "\n")
    print(text)
    return 0 if told[BEST] > max(told["vector"], told["words"]) else 1


if __name__ == "__main__":
    sys.exit(main())
