"""The figures: is the index as good as an exact scan, does it find the word, and how fast."""

from __future__ import annotations

import time
from dataclasses import dataclass

from longbow import LongbowClient, query_info

K = 10
RECALL_WANTED = 0.99
HITS_WANTED = 0.80


@dataclass(frozen=True)
class Question:
    """A description, the word it looks for, and its vector."""

    text: str
    word: str
    vector: list[float]


@dataclass(frozen=True)
class Figures:
    """Over all questions; recall and hits are shares from 0 to 1, times are milliseconds."""

    recall: float
    first: float
    in_ten: float
    strategy: str
    p50: float
    p95: float
    p99: float

    def good(self) -> bool:
        """Whether recall and hits are as promised."""
        return self.recall >= RECALL_WANTED and self.in_ten >= HITS_WANTED


def percentile(sorted_values: list[float], share: float) -> float:
    """The smallest value that at least this share of the values does not pass."""
    place = -(-len(sorted_values) * round(share * 100) // 100)
    return sorted_values[max(0, place - 1)]


def exact_ids(client: LongbowClient, dataset: str, questions: list[Question]) -> list[list[int]]:
    """The ten nearest ids to each question, found by comparing with every row."""
    vectors = [question.vector for question in questions]
    reply = client.search(dataset, vectors, K, exact=True)
    found: list[list[int]] = [[] for _ in questions]
    for query, number in zip(reply["query_index"].to_pylist(), reply["id"].to_pylist()):
        found[query].append(number)
    return found


def measure(
    client: LongbowClient, dataset: str, questions: list[Question], truth: list[list[int]]
) -> Figures:
    """Asks every question once, one at a time, by the defaults; compares with the truth."""
    times, same, first, in_ten = [], 0, 0, 0
    strategies: set[str] = set()
    for question, right in zip(questions, truth):
        began = time.perf_counter()
        reply = client.search(dataset, question.vector, K, columns=["lemmas"])
        times.append((time.perf_counter() - began) * 1000)
        strategies.add(query_info(reply).strategy or "?")
        same += len(set(right) & set(reply["id"].to_pylist()))
        hits = [question.word in lemmas for lemmas in reply["lemmas"].to_pylist()]
        first += bool(hits) and hits[0]
        in_ten += any(hits)
    times.sort()
    count = len(questions)
    return Figures(
        recall=same / sum(map(len, truth)),
        first=first / count,
        in_ten=in_ten / count,
        strategy=", ".join(sorted(strategies)),
        p50=percentile(times, 0.50),
        p95=percentile(times, 0.95),
        p99=percentile(times, 0.99),
    )
