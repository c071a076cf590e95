"""Rows change as they are said to, answers are judged by what is there, and ratios are taken round by round."""

from __future__ import annotations

import itertools
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent), str(HERE.parent / "ann")]

import compare_databases
import data
import database_child
import database_report
import environments
import paths
import peers
import stages
import truth
from database_process import NotMeasured, Process
from database_report import Measured
from peers.database import K, Database


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache in which `synth128` is a small set."""
    cache = tmp_path_factory.mktemp("cache")
    whole = data.DataSet("synth128", truth.EUCLIDEAN, lambda place: data.synth128(place, rows=1_200, dim=32))
    folder = data.ensure(whole, cache)
    np.save(folder / "queries.npy", np.load(folder / "queries.npy")[:150])
    np.save(folder / "truth.npy", np.load(folder / "truth.npy")[:150])
    stages.ensure(folder, truth.EUCLIDEAN)
    return cache


def test_a_tenth_is_replaced_and_another_deleted() -> None:
    base = np.arange(80, dtype=np.float32).reshape(40, 2)
    replaced = stages.rows_of(base, stages.REPLACED)
    # What is near is about as near as before, under another id; and no vector is one that was there.
    near = np.abs(replaced[:4] - base[[1, 2, 3, 0]]).max(axis=1)
    assert (near > 0).all()
    assert (near < 1).all()
    lengths = np.linalg.norm(replaced[:4], axis=1)
    assert lengths == pytest.approx(np.linalg.norm(base[[1, 2, 3, 0]], axis=1))
    assert replaced[4:].tolist() == base[4:].tolist()
    deleted = stages.rows_of(base, stages.DELETED)
    assert deleted.tolist() == replaced[:36].tolist()


class Exact(Database):
    """Finds everything in a matrix; what it is told to forget it may keep."""

    packages = ("numpy",)
    batch = 500
    forgets = True
    updates = True

    def create(self, rows: int) -> None:
        self.rows = np.full((rows, self.dim), np.inf, np.float32)

    def insert(self, first: int, vectors: np.ndarray) -> None:
        self.rows[first : first + len(vectors)] = vectors

    def replace(self, first: int, vectors: np.ndarray) -> None:
        if self.updates:
            self.insert(first, vectors)

    def delete(self, first: int, count: int) -> None:
        if self.forgets:
            self.rows[first : first + count] = np.inf

    def effort(self, breadth: int) -> None:
        self.breadth = breadth

    def search(self, query: np.ndarray) -> Any:
        return np.argsort(((self.rows - query) ** 2).sum(axis=1), kind="stable")[:K]


def lived(adapter: type[Exact], small: Path, tmp_path: Path) -> list[dict[str, Any]]:
    """A pass over what was built, what was replaced, what was deleted."""
    child = database_child.Child(adapter, small / "synth128", truth.EUCLIDEAN, tmp_path)
    told = child.build()
    assert told["rows_per_second"] > 0 and told["versions"] == {"numpy": np.__version__}
    passes = [child.one_pass(10, 60)]
    child.replace()
    passes.append(child.one_pass(10, 60))
    child.delete()
    return [*passes, child.one_pass(10, 60)]


def test_an_exact_search_is_right_at_every_stage(small: Path, tmp_path: Path) -> None:
    for found in lived(Exact, small, tmp_path):
        assert (found["recall"], found["short"], found["deleted_found"]) == (1.0, 0, 0)
        assert found["qps"] > 0 and found["p99_ms"] >= found["p50_ms"] > 0


def test_an_old_vector_is_a_wrong_answer(small: Path, tmp_path: Path) -> None:
    stale = type("Stale", (Exact,), {"updates": False})
    built, replaced, _ = lived(stale, small, tmp_path)
    assert built["recall"] == 1.0
    assert 0.7 < replaced["recall"] < 0.97


def test_a_deleted_row_that_is_found_is_counted(small: Path, tmp_path: Path) -> None:
    keeps = type("Keeps", (Exact,), {"forgets": False})
    *_, deleted = lived(keeps, small, tmp_path)
    assert deleted["deleted_found"] > 0
    assert deleted["recall"] < 1.0


def test_a_slow_pass_ends_early_and_says_how_much_it_found(small: Path, tmp_path: Path) -> None:
    child = database_child.Child(Exact, small / "synth128", truth.EUCLIDEAN, tmp_path)
    child.build()
    asked: list[int] = []
    child.database.search = lambda query: (asked.append(1), Exact.search(child.database, query))[1]
    assert child.one_pass(10, within=0.0)["recall"] == 1.0
    assert len(asked) == 10 + database_child.LEAST_QUERIES


def test_short_answers_are_filled_up() -> None:
    assert database_child.whole([3, 4]).tolist() == [3, 4, *[-1] * 8]
    assert database_child.whole(np.arange(20)).tolist() == list(range(10))


SCRIPT = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if request["do"] == "end":
        sys.exit("no more")
    print(json.dumps({"error": "no"} if request["do"] == "fail" else request), flush=True)
"""


def test_a_child_is_asked_and_says_why_it_fails(tmp_path: Path) -> None:
    process = Process([sys.executable, "-c", SCRIPT], tmp_path / "log", {})
    try:
        assert process.ask("pass", 10, effort=3) == {"do": "pass", "effort": 3}
        with pytest.raises(NotMeasured, match="^fail: no$"):
            process.ask("fail", 10)
        with pytest.raises(NotMeasured, match="ended \\(1\\): no more"):
            process.ask("end", 10)
    finally:
        process.stop()


def points(*pairs: tuple[float, float]) -> list[dict[str, Any]]:
    """Points of a round, the effort their place."""
    extra = {"p50_ms": 1.0, "p99_ms": 2.0, "qps_many": None}
    return [{"effort": n, "recall": recall, "qps": qps, **extra} for n, (recall, qps) in enumerate(pairs)]


def measured(name: str, rate: float) -> Measured:
    """Two rounds, the second on a machine half as fast; a quarter is lost by replacing."""
    rounds = [points((0.9, 4 * share), (0.999, share)) for share in (rate, rate / 2)]
    built = {"rows_per_second": 1.0, "indexed_s": 10.0, "disk_mb": 1.0, "versions": {}, "settings": "s"}
    built |= {"acknowledged": "a", "sweep": [0, 1], "batch": 1}
    changes: dict[str, Any] = {"replaced_per_second": 1.0, "deleted_per_second": 1.0}
    changes |= {"before": rounds[0], "deleted": rounds[0]}
    changes["replaced"] = [{**point, "qps": 0.75 * point["qps"]} for point in rounds[0]]
    memory = {"anonymous_mb": 1.0, "file_mb": 1.0, "open_s": 1.0, "disk_mb_end": 1.0}
    # The median of the three is as the first.
    slower = {**changes, "before": [{**point, "qps": 1.5 * point["qps"]} for point in rounds[0]]}
    faster = {**changes, "before": [{**point, "qps": 0.9 * point["qps"]} for point in rounds[0]]}
    return Measured(name, None, built, rounds, [slower, changes, faster], memory)


def test_ratios_are_of_the_same_round_and_to_the_best() -> None:
    found = [
        measured("longbow", 800),
        measured("hnswlib", 400),
        measured("qdrant", 100),
        measured("zvec", 200),
    ]
    report = database_report.of_set([*found, Measured("chroma", "not installed: no")])
    ours = report["systems"][0]
    assert [at["qps_ratio"] for at in ours["at_recall"]] == [pytest.approx(2.0)] * 2
    assert [at["qps_replaced_ratio"] for at in ours["at_recall"]] == [pytest.approx(0.75)] * 2
    assert [at["qps_deleted_ratio"] for at in ours["at_recall"]] == [pytest.approx(1.0)] * 2
    best, qdrant = (report["against"][at] for at in (0, 2))
    assert (best["best"], best["ratio"]) == ("zvec", pytest.approx(4.0))
    assert (qdrant["best"], qdrant["ratio"]) == ("qdrant", pytest.approx(8.0))


def test_the_table_hides_nothing() -> None:
    systems = database_report.of_set([measured("longbow", 800), Measured("chroma", "not installed: no")])
    machine = {"cpu": "c", "cores": 2, "memory_mb": 1, "kernel": "k", "file_system": "f", "commit": "a"}
    sets = [{"name": "small", "rows": 10, "dim": 4, "metric": "euclidean", **systems}]
    sets.append({"name": "other", "not_measured": "no apt-get", "systems": []})
    report = {"machine": machine | {"load_before": 0.1}, "rounds": 2, "load_after": 0.2, "sets": sets}
    text = database_report.render(report)
    assert "chroma: not measured: not installed: no" in text
    assert "other: not measured: no apt-get" in text
    assert "small: 10 x 4, euclidean" in text


def test_breadths_around_the_recalls_are_searched_again() -> None:
    curve = points((0.8, 9.0), (0.9, 8.0), (0.96, 7.0), (0.97, 6.0), (0.98, 5.0), (0.995, 4.0))
    assert compare_databases.around(curve) == [1, 2, 3, 4, 5]
    assert compare_databases.around(points((0.999, 1.0))) == [0]


def test_an_environment_that_cannot_be_made_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "none.txt").write_text("--no-index\nno-such-package==1\n")
    monkeypatch.setattr(environments, "HERE", tmp_path)
    with pytest.raises(environments.NotInstalled, match="no-such-package"):
        environments.ensure("none", tmp_path)


def test_every_environment_has_an_exact_list() -> None:
    for name in {peer.environment for peer in peers.ALL} - {None}:
        lines = (environments.HERE / "requirements" / f"{name}.txt").read_text().splitlines()
        packages = [line for line in lines if not line.startswith(("#", "-"))]
        assert packages and all(package.count("==") == 1 for package in packages)


def test_a_child_that_is_left_alone_ends_its_server(small: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(HERE / "database_child.py"), "longbow-wire", str(small / "synth128")]
    own = tmp_path / "own"
    own.mkdir()
    process = Process([*command, "euclidean", str(own)], tmp_path / "log", {"LONGBOW_BIN": str(paths.BINARY)})
    process.ask("build", 60)
    assert serving(own) == 1
    process.stop()
    assert serving(own) == 0


def serving(own: Path) -> int:
    """Processes that were started on a folder."""
    found = 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # It ended between the listing and now.
            found += str(own / "data").encode() in (process / "cmdline").read_bytes()
    return found


def test_longbow_goes_through_all_of_it(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    command = ["--cache", str(small), "--dir", str(tmp_path), "--binary", str(paths.BINARY)]
    command += ["--sets", "synth128", "--only", ",".join(peers.OURS), "--rounds", "1"]
    command += ["--changes", "2", "--json", str(out)]
    assert compare_databases.main(command) == 0
    (found,) = json.loads(out.read_text())["sets"]
    for row in found["systems"]:
        (round_,) = row["rounds"]
        assert round_[-1]["recall"] >= compare_databases.ENOUGH
        assert len(row["changes"]) == 2
        for changes, stage in itertools.product(row["changes"], ("before", "replaced", "deleted")):
            after = changes[stage][-1]
            assert after["recall"] >= 0.9 and after["deleted_found"] == after["short"] == 0
        assert row["anonymous_mb"] > 1
