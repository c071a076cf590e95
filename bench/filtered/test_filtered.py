"""Attributes are those of the rows, cells pass what they say, truth is exact, faults are told, and Longbow has none."""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent), str(HERE.parent / "ann")]

import attributes
import cells
import data
import filtered_recall
import filtered_truth
import new_filters
import truth
from condition import Condition


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache in which `synth128` is a small set."""
    place = tmp_path_factory.mktemp("cache")
    data.ensure(small(), place)
    return place


def small() -> data.DataSet:
    """A set that is made in a moment."""
    return data.DataSet("synth128", truth.EUCLIDEAN, lambda place: data.synth128(place, rows=3_000, dim=16))


def vectors(count: int, dim: int = 8, seed: int = 1) -> np.ndarray:
    """Random ones."""
    return np.random.default_rng(seed).standard_normal((count, dim)).astype(np.float32)


def test_a_condition_passes_rows_and_reads_as_sql() -> None:
    columns = {"a": np.array([1, 2, 3])}
    assert Condition("a", "<", 2).passes(columns).tolist() == [True, False, False]
    assert Condition("a", ">=", 2).passes(columns).tolist() == [False, True, True]
    assert Condition("a", "=", 2).passes(columns).tolist() == [False, True, False]
    assert Condition("a", "=", 2).sql() == "a = 2"


def test_attributes_of_the_first_rows_are_those_of_the_whole(cache: Path) -> None:
    folder = cache / "synth128"
    whole = attributes.load(attributes.ensure(small(), cache, folder))
    cut = data.ensure(data.beginning(small(), folder, 500), cache)
    part = attributes.load(attributes.ensure(small(), cache, cut))
    assert len(whole.rows["label"]) == 3_000 and len(part.rows["label"]) == 500
    for name, column in part.rows.items():
        assert column.tolist() == whole.rows[name][:500].tolist()
    assert part.queries["label"].tolist() == whole.queries["label"].tolist()
    assert set(whole.rows["label"]) == set(range(attributes.CELLS))
    assert 0 <= whole.rows["rare"].min() < whole.rows["rare"].max() < attributes.RARE


def test_meanings_keep_their_own_attributes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "usr/share/wordnet"
    folder.mkdir(parents=True)
    for number, part in enumerate(data.WORDNET_PARTS):
        lines = [f"{n:08d} {number:02d} x 01 word{n} 0 000 | {'g' * (n + 1)}  \n" for n in range(400)]
        (folder / f"data.{part}").write_text("  1 the licence\n" + "".join(lines))
    monkeypatch.setattr(data, "debian", lambda *_: (tmp_path, "1"))
    made = attributes._meanings(tmp_path)
    base, queries = data.held_out(1_600)
    texts = data.wordnet_texts(folder)
    for side, places in ((made.rows, base), (made.queries, queries)):
        assert side["label"].tolist() == side["part_of_speech"].tolist() == (places // 400).tolist()
        assert side["gloss_length"].tolist() == [len(texts[at].split(": ")[1]) for at in places]


def test_a_file_that_is_not_of_labels_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "labels.gz"
    head = np.array([0x801, 3], ">u4").tobytes()
    path.write_bytes(gzip.compress(head + bytes([7, 0, 9])))
    assert data.idx_labels(path).tolist() == [7, 0, 9]
    path.write_bytes(gzip.compress(head + bytes([7, 0])))
    with pytest.raises(data.NoData):
        data.idx_labels(path)


@pytest.mark.parametrize("metric", [truth.EUCLIDEAN, truth.COSINE])
def test_truth_is_exact_among_the_rows_that_pass(metric: str) -> None:
    base, queries = vectors(300), vectors(4, seed=2)
    if metric == truth.COSINE:
        base /= np.linalg.norm(base, axis=1, keepdims=True)
        queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    columns = {"a": np.arange(300) % 50}
    conditions = [Condition("a", "<", value) for value in (25, 1, 25, 0)]
    found = filtered_truth.nearest(base, queries, conditions, columns, metric)
    for ids, query, condition in zip(found, queries, conditions, strict=True):
        passing = np.flatnonzero(condition.passes(columns))
        near = passing[np.argsort(truth.distances(base[passing], query, metric))][: filtered_truth.K]
        assert ids[ids >= 0].tolist() == near.tolist()
    assert (found[1] >= 0).sum() == 6 and (found[3] == -1).all()


def judged(found: list[list[int]], conditions: list[Condition]) -> dict[str, Any]:
    """Answers to the query 0 over the points 0, 1, 1, 2, 3, …, 29, of which the attribute is the place."""
    base = np.array([0, 1, 1, *range(2, 30)], np.float32)[:, None]
    queries = np.zeros((len(found), 1), np.float32)
    columns = {"a": np.arange(len(base))}
    ids = np.full((len(found), filtered_truth.K), -1)
    for row, answer in zip(ids, found, strict=True):
        row[: len(answer)] = answer
    true = filtered_truth.nearest(base, queries, conditions, columns, truth.EUCLIDEAN)
    allowed = {condition: condition.passes(columns) for condition in conditions}
    return filtered_truth.judged(ids, true, base, queries, truth.EUCLIDEAN, allowed, conditions)


def test_answers_are_judged_by_what_passes() -> None:
    few, many = Condition("a", "<", 3), Condition("a", ">=", 1)
    assert judged([[0, 1, 2]], [few]) == {"recall": 1.0, "short": 0, "wrong": 0}
    assert judged([[0, 1]], [few]) == {"recall": pytest.approx(2 / 3), "short": 1, "wrong": 0}
    # Row 0 is the nearest of all, and does not pass.
    assert judged([list(range(10))], [many]) == {"recall": pytest.approx(0.9), "short": 0, "wrong": 1}
    # A row twice is a row.
    assert judged([[0, 1, 1]], [few]) == {"recall": pytest.approx(2 / 3), "short": 1, "wrong": 0}
    assert judged([[], []], [few, Condition("a", "<", 0)])["short"] == 1


def test_a_row_as_near_as_the_last_counts() -> None:
    assert judged([[0, 2]], [Condition("a", "<", 2)])["wrong"] == 1
    base, queries = np.ones((30, 2), np.float32), np.zeros((1, 2), np.float32)
    condition = Condition("a", ">=", 5)
    columns = {"a": np.arange(30)}
    true = filtered_truth.nearest(base, queries, [condition], columns, truth.EUCLIDEAN)
    found = np.arange(20, 30)[None]
    allowed = {condition: condition.passes(columns)}
    told = filtered_truth.judged(found, true, base, queries, truth.EUCLIDEAN, allowed, [condition])
    assert told["recall"] == 1.0 and not set(true[0]) & set(found[0])


def test_cells_pass_as_many_rows_near_and_far() -> None:
    base, queries = vectors(2_000), vectors(50, seed=2)
    around = cells.anchors(base, queries, truth.EUCLIDEAN)
    reach: dict[str, float] = {}
    for cell in cells.exact_shares(around, len(base), [0.01, 5.0]):
        for condition in cell.conditions:
            passes = condition.passes(around.columns)
            assert passes.sum() == (1 if condition.value in (1, 1_999) else 100)
        far = [
            truth.distances(base[condition.passes(around.columns)], query, truth.EUCLIDEAN).mean()
            for query, condition in zip(queries, cell.conditions, strict=True)
        ]
        reach[cell.attribute] = float(np.mean(far))
    assert reach["near_anchor"] < 0.8 * reach["by_chance"]
    assert reach["by_chance"] < 0.95 * reach["near_other"] < 0.8 * reach["far_rows"]


def test_real_attributes_are_the_query_s_own_or_not() -> None:
    rng = np.random.default_rng(3)
    rows = {"label": rng.integers(5, size=500), "gloss_length": rng.integers(4, 90, size=500)}
    known = attributes.Attributes(rows, {name: column[:40] for name, column in rows.items()})
    found = list(cells.real(known, [1.0, 50.0]))
    assert [(cell.attribute, cell.relation) for cell in found] == [
        ("label", "correlated"),
        ("label", "opposed"),
        ("gloss_length", "independent"),
        ("gloss_length", "independent"),
    ]
    for cell, same in zip(found[:2], (True, False), strict=True):
        values = np.array([condition.value for condition in cell.conditions])
        assert ((values == known.queries["label"]) == same).all()
    assert 5 <= found[2].conditions[0].passes(rows).sum() < 30
    assert 250 <= found[3].conditions[0].passes(rows).sum() < 280


def test_there_is_no_other_value_than_the_only_one() -> None:
    one = {"label": np.zeros(5, int)}
    with pytest.raises(ValueError, match="one label"):
        attributes.others(attributes.Attributes(one, one), "label")


def test_faults_are_told() -> None:
    good = {
        "attribute": "a",
        "relation": "r",
        "share": 0.1,
        "queries": 5,
        "recall": 0.96,
        "short": 0,
        "wrong": 0,
    }
    cells_ = [good, good | {"recall": 0.94}, good | {"short": 2}, good | {"wrong": 3}]
    told = filtered_recall.faults({"sets": [{"name": "s", "cells": cells_}]}, 0.95)
    assert [line.split(": ")[1] for line in told] == [
        "recall 0.9400 is below 0.95",
        "2 of 5 answers are short",
        "3 rows do not pass",
    ]


def test_wrong_flags_are_refused() -> None:
    for text in ("0", "101", "-1", "x", ""):
        with pytest.raises(argparse.ArgumentTypeError):
            filtered_recall.shares(text)
    with pytest.raises(SystemExit):
        filtered_recall.arguments(["--queries", "100"])


def test_longbow_goes_through_all_of_it(cache: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    command = ["--cache", str(cache), "--dir", str(tmp_path), "--sets", "synth128", "--queries", "200"]
    assert filtered_recall.main([*command, "--shares", "0.01,1,50", "--json", str(out)]) == 0
    (found,) = json.loads(out.read_text())["sets"]
    assert len(found["cells"]) == 3 * 4 + 2
    for cell in found["cells"]:
        assert sum(cell["strategies"].values()) == cell["queries"] == 200
        assert cell["qps"] > 0 and cell["first_ms"] > 0
    # A recall that cannot be had fails.
    assert filtered_recall.main([*command, "--shares", "50", "--at-least", "1.1"]) == 1


def test_new_filters_are_measured_in_all_ways(tmp_path: Path) -> None:
    found = new_filters.run(20_000, str(tmp_path))
    assert [row["filter"] for row in found] == list(new_filters.SHAPES)
    for row in found:
        assert row["remembered_us"] <= row["slowest_us"], row
        assert min(row["sorted_us"], row["compared_us"], row["duckdb_count_us"]) > 0, row
