"""Filters pass what they say, answers are judged by the rows that pass, and Longbow goes through all of it."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent), str(HERE.parent / "ann"), str(HERE.parent / "filtered")]

import attributes
import compare_databases
import data
import database_child
import filtered_report
import filtered_stage
import filters
import paths
import truth
from condition import Condition
from database_report import Measured
from filtered_report import Filtered
from peers.database import K, Database

WANTED = ["1", "50", "opposed"]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache in which `synth128` is a small set with attributes."""
    place = tmp_path_factory.mktemp("cache")
    whole = data.DataSet(
        "synth128", truth.EUCLIDEAN, lambda folder: data.synth128(folder, rows=1_500, dim=32)
    )
    folder = data.ensure(whole, place)
    np.save(folder / "queries.npy", np.load(folder / "queries.npy")[:150])
    np.save(folder / "truth.npy", np.load(folder / "truth.npy")[:150])
    attributes.ensure(whole, place, folder)
    filters.ensure(folder, truth.EUCLIDEAN, WANTED)
    return place


def test_only_shares_that_rare_can_tell_are_taken() -> None:
    assert filters.names("0.1,99.9,opposed") == ["0.1", "99.9", "opposed"]
    for wrong in ("0.05", "100", "0", "-1", "none", ""):
        with pytest.raises(argparse.ArgumentTypeError):
            filters.names(wrong)


def test_no_query_is_opposed_to_its_own_label() -> None:
    known = attributes.Attributes(
        {"label": np.array([0, 0, 0, 1, 2])}, {"label": np.array([0, 1, 2, 0] * 50)}
    )
    for own, condition in zip(known.queries["label"], filters.conditions("opposed", known), strict=True):
        assert condition.field == "label" and condition.value != own
    known.rows["label"][:] = 0
    with pytest.raises(ValueError, match="one label"):
        filters.conditions("opposed", known)


def test_a_share_passes_as_many_rows() -> None:
    rare = np.arange(1_000)
    known = attributes.Attributes({"label": rare % 10, "rare": rare}, {"label": np.zeros(2, int)})
    one, other = filters.conditions("0.1", known)
    assert one == other and one.passes(known.rows).sum() == 1
    assert filters.conditions("90", known)[0].passes(known.rows).sum() == 900


class Exact(Database):
    """Compares every row that passes, or, if it is told so, leaves some out or lets others in."""

    packages = ("numpy",)
    sweep = (10, 20)
    left_out = 0
    heeds = True

    def create(self, rows: int) -> None:
        self.rows = np.empty((rows, self.dim), np.float32)
        self.kept = {name: np.empty(rows, np.int32) for name in self.attributes}

    def insert(self, first: int, vectors: np.ndarray) -> None:
        self.rows[first : first + len(vectors)] = vectors
        for name, column in self.columns(first, len(vectors)).items():
            self.kept[name][first : first + len(vectors)] = column

    def effort(self, breadth: int) -> None:
        self.breadth = breadth

    def search(self, query: np.ndarray) -> Any:
        return np.argsort(((self.rows - query) ** 2).sum(axis=1))[:K]

    def search_where(self, query: np.ndarray, condition: Condition) -> Any:
        far = ((self.rows - query) ** 2).sum(axis=1)
        passing = condition.passes(self.kept) if self.heeds else np.ones(len(far), bool)
        nearest = [row for row in np.argsort(far) if passing[row]]
        return nearest[self.left_out : K]


def asked(adapter: type[Exact], cache: Path, own: Path) -> dict[str, dict[str, Any]]:
    """A pass under each filter."""
    child = database_child.Child(adapter, cache / "synth128", truth.EUCLIDEAN, own, attributed=True)
    child.build()
    return {name: child.filtered(10, name, 60) for name in WANTED}


def test_an_exact_search_is_right_under_every_filter(cache: Path, tmp_path: Path) -> None:
    for found in asked(Exact, cache, tmp_path).values():
        assert (found["recall"], found["short"], found["wrong"], found["asked"]) == (1.0, 0, 0, 150)
        assert found["qps"] > 0 and 0 < found["share"] < 1


def test_a_short_answer_is_counted_and_costs_recall(cache: Path, tmp_path: Path) -> None:
    short = type("Short", (Exact,), {"left_out": 2})
    for found in asked(short, cache, tmp_path).values():
        assert found["short"] == 150 and found["wrong"] == 0
        assert 0.7 < found["recall"] <= 0.85


def test_a_row_that_does_not_pass_is_counted_and_is_no_hit(cache: Path, tmp_path: Path) -> None:
    careless = type("Careless", (Exact,), {"heeds": False})
    found = asked(careless, cache, tmp_path)
    assert found["1"]["wrong"] > 1_300 and found["1"]["recall"] < 0.1
    assert found["opposed"]["wrong"] > 0 and found["opposed"]["recall"] < 0.9


def test_a_fast_pass_is_made_again() -> None:
    made: list[int] = []
    found, rate = database_child.timed(
        lambda number: made.append(number) or [number],
        [(n,) for n in range(20)],
        database_child.Limits(1, 5, 0.01),
    )
    assert len(found) == 20 and len(made) > 40 and rate["qps"] > 0


def point(effort: int, recall: float, qps: float) -> dict[str, Any]:
    """A pass."""
    extra = {"p50_ms": 1.0, "p99_ms": 2.0, "share": 0.1, "short": 0, "wrong": 0, "asked": 100}
    return {"effort": effort, "recall": recall, "qps": qps, **extra}


def test_breadth_rises_until_one_more_than_enough() -> None:
    recalls = {1: 0.5, 2: 0.9, 4: 0.96, 8: 0.99, 16: 1.0}
    points = filtered_stage.rising(list(recalls), lambda effort: point(effort, recalls[effort], 1.0))
    assert [one["effort"] for one in points] == [1, 2, 4, 8]


def measured(name: str, rate: float) -> Filtered:
    """Without a filter, effort 2 is enough; under one it takes 4, at half the rate, and another is never enough."""
    told: dict[str, Any] = {"versions": {}, "settings": "s", "indexed_s": 1.0}
    plain = [point(1, 0.9, 2 * rate), point(2, 0.96, rate)]
    ten = [point(1, 0.5, 2 * rate), point(2, 0.8, rate), point(4, 0.97, rate / 2)]
    under = {"10": ten, "opposed": [point(1, 0.1, rate)]}
    return Filtered(Measured(name, None, told), [plain, plain], [under, under])


def test_the_fastest_that_finds_enough_is_told_beside_the_same_effort() -> None:
    found = [measured("longbow", 800), measured("zvec", 200), Filtered(Measured("chroma", "no"))]
    report = filtered_report.of_set(found, ["10", "opposed"])
    ten, opposed = report["systems"][0]["filters"]
    assert (ten["fastest"]["effort"], ten["by_plain"]) == (4, pytest.approx(0.5))
    assert (ten["as_plain"]["effort"], ten["as_plain"]["recall"]) == (2, 0.8)
    assert opposed["fastest"] is None and opposed["best_recall"] == 0.1
    assert report["against"] == [{"filter": "10", "best": "zvec", "ratio": pytest.approx(4.0)}]
    machine = {"cpu": "c", "cores": 2, "memory_mb": 1, "kernel": "k", "file_system": "f", "commit": "a"}
    sets = [{"name": "small", "rows": 10, "dim": 4, "metric": "euclidean", **report}]
    text = filtered_report.render(
        {"machine": machine | {"load_before": 0.1}, "rounds": 2, "load_after": 0.2, "sets": sets}
    )
    assert "chroma: not measured: no" in text and "0.800  800  0/100" in text


def test_the_lowest_breadth_is_marked_where_it_finds_more() -> None:
    best = filtered_report.fastest([[point(1, 0.99, 5.0), point(2, 1.0, 4.0)]])
    assert best is not None and best["above"] is True
    best = filtered_report.fastest([[point(1, 0.9, 5.0), point(2, 1.0, 4.0)]])
    assert best is not None and best["above"] is False


def test_longbow_finds_what_passes(cache: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    command = [
        "--cache",
        str(cache),
        "--dir",
        str(tmp_path),
        "--binary",
        str(paths.BINARY),
        "--sets",
        "synth128",
    ]
    command += ["--filters", ",".join(WANTED), "--only", "longbow,longbow-ticket", "--rounds", "1"]
    assert compare_databases.main([*command, "--json", str(out)]) == 0
    (found,) = json.loads(out.read_text())["sets"]
    for row in found["systems"]:
        for cell in row["filters"]:
            assert cell["fastest"]["recall"] >= filtered_report.RECALL
            assert cell["fastest"]["short"] == cell["wrong"] == 0


def test_what_takes_no_filter_is_not_asked(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        compare_databases.arguments(["--filters", "1", "--only", "longbow-wire"])
    assert "unknown: longbow-wire" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        compare_databases.arguments(["--only", "faiss"])
