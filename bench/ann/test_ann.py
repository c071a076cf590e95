"""The exact answers are exact, what is found is counted right, and ratios are taken round by round."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent)]

import adapter_child
import adapters
import ann_report
import compare
import curves
import data
import plot
import systems
import truth
import venv_ann
from ann_report import Result


def points(*pairs: tuple[float, float]) -> list[dict[str, Any]]:
    """Points of a round, the effort their place."""
    return [{"effort": n, "recall": recall, "qps": qps} for n, (recall, qps) in enumerate(pairs)]


def test_a_rate_between_two_settings_is_interpolated_by_its_logarithm() -> None:
    curve = [(0.8, 10_000.0), (0.9, 1_000.0)]
    assert curves.at(curve, 0.85) == curves.Rate(pytest.approx(10_000 / 10**0.5))
    assert curves.at(curve, 0.9) == curves.Rate(pytest.approx(1_000.0))


def test_a_recall_outside_of_the_curve_is_marked_or_none() -> None:
    curve = [(0.92, 5_000.0), (0.97, 2_000.0)]
    assert curves.at(curve, 0.9) == curves.Rate(5_000.0, above=True)
    assert curves.at(curve, 0.99) is None
    assert curves.at([], 0.9) is None


def test_a_setting_that_another_beats_in_both_is_left_out() -> None:
    curve = [(0.9, 4_000.0), (0.95, 5_000.0), (0.99, 1_000.0), (0.99, 900.0)]
    assert curves.frontier(curve) == [(0.95, 5_000.0), (0.99, 1_000.0)]
    assert curves.at(curve, 0.9) == curves.Rate(5_000.0, above=True)


def test_ratios_are_of_the_same_round() -> None:
    # The machine is half as fast in the second round, for both.
    ours = [points((0.8, 400.0), (0.95, 200.0)), points((0.8, 200.0), (0.95, 110.0))]
    theirs = [points((0.8, 200.0), (0.95, 100.0)), points((0.8, 100.0), (0.95, 50.0))]
    found = curves.ratio(ours, theirs, 0.95)
    assert found == curves.Ratio(*(pytest.approx(ratio) for ratio in (2.1, 2.0, 2.2)), above=False)
    assert curves.ratio(ours, theirs, 0.96) is None
    assert curves.ratio(ours, theirs, 0.7) == curves.Ratio(2.0, 2.0, 2.0, above=True)


def test_medians_skip_what_a_round_has_not() -> None:
    rounds = [points((0.8, 100.0)), points((0.8, 300.0)), [{"effort": 0, "recall": 0.8, "qps": None}]]
    assert curves.medians(rounds) == [{"effort": 0, "recall": 0.8, "qps": 200.0}]


@pytest.mark.parametrize("metric", [truth.EUCLIDEAN, truth.COSINE])
def test_the_truth_is_that_of_plain_arithmetic(metric: str) -> None:
    rng = np.random.default_rng(1)
    base, queries = (rng.standard_normal((n, 8)).astype(np.float32) for n in (500, 60))
    if metric == truth.COSINE:
        base, queries = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (base, queries))
    found = truth.nearest(base, queries, metric, depth=20)
    for query, rows in zip(queries, found, strict=True):
        if metric == truth.COSINE:
            far = 1 - base.astype(np.float64) @ query.astype(np.float64)
        else:
            far = ((base.astype(np.float64) - query.astype(np.float64)) ** 2).sum(axis=1)
        assert rows.tolist() == np.argsort(far, kind="stable")[:20].tolist()
    assert found.dtype == np.int32


def test_the_truth_survives_distances_that_float32_cannot_tell_apart() -> None:
    # Near the origin of the differences, far from that of the coordinates: products of 1e8 with differences of 1e-2.
    base = np.full((2_000, 4), 4_000.0, dtype=np.float32)
    base[:, 0] += np.random.default_rng(2).permutation(2_000).astype(np.float32) / 256
    query = np.full((1, 4), 4_000.0, dtype=np.float32)
    found = truth.nearest(base, query, truth.EUCLIDEAN, depth=100)[0]
    assert found.tolist() == np.argsort(base[:, 0], kind="stable")[:100].tolist()


def test_recall_counts_equal_rows_and_no_row_twice() -> None:
    base = np.array([[1], [-1], [2], [-2], [9]], dtype=np.float32)
    query = np.zeros((1, 1), dtype=np.float32)
    exact = truth.nearest(base, query, truth.EUCLIDEAN)

    def found(*rows: int) -> float:
        return truth.recall(np.array([rows]), exact, base, query, truth.EUCLIDEAN, 3)

    assert found(0, 1, 2) == found(0, 1, 3) == 1.0
    assert found(0, 0, 4) == pytest.approx(1 / 3)
    assert found(-1, -1, -1) == 0.0


def test_fewer_rows_than_asked_for_are_filled_up() -> None:
    assert adapter_child.whole(np.array([3, 4], dtype=np.uint32)).tolist() == [[3, 4, *[-1] * 8]]
    assert adapter_child.whole(np.arange(20).reshape(2, 10)).shape == (2, 10)


def test_idx_images_are_read_and_a_torn_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "images.gz"
    header = np.array([0x803, 2, 2, 3], dtype=">u4").tobytes()
    path.write_bytes(gzip.compress(header + bytes(range(12))))
    assert data.idx_images(path).tolist() == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]
    path.write_bytes(gzip.compress(header + bytes(11)))
    with pytest.raises(data.NoData, match=r"images\.gz"):
        data.idx_images(path)


def test_a_synset_is_its_words_and_its_gloss(tmp_path: Path) -> None:
    line = '00001740 03 n 02 entity 0 living_thing(a) 0 001 ~ 00001930 n 0000 | that which is; "it is"  '
    for part in ("noun", "verb", "adj", "adv"):
        (tmp_path / f"data.{part}").write_text(f"  1 licence | no\n{line}\n", encoding="latin-1")
    assert data.wordnet_texts(tmp_path) == ['entity, living thing: that which is; "it is"'] * 4


def test_a_set_is_made_once(tmp_path: Path) -> None:
    made = []

    def make(_: Path) -> data.Vectors:
        made.append(1)
        return data.synth128(tmp_path, rows=300, dim=4)

    whole = data.DataSet("small", truth.EUCLIDEAN, make)
    folder = data.ensure(whole, tmp_path)
    assert data.ensure(whole, tmp_path) == folder
    assert len(made) == 1
    assert np.load(folder / "truth.npy").shape == (1000, 100)
    part = data.ensure(data.beginning(whole, folder, 50), tmp_path)
    about = json.loads((part / "about.json").read_text())
    assert (about["rows"], about["dim"], about["queries"]) == (50, 4, 1000)
    assert np.load(part / "truth.npy").max() < 50


class Exact(adapters.Adapter):
    """Finds everything, and counts its calls."""

    name, settings = "exact", "none"

    def build(self, base: np.ndarray, metric: str) -> None:
        self.base, self.calls = base, 0

    def effort(self, breadth: int) -> None:
        self.breadth = breadth

    def search(self, queries: np.ndarray, k: int) -> Any:
        self.calls += 1
        return truth.nearest(self.base, queries, truth.EUCLIDEAN, k)


def test_a_pass_is_one_call_a_query_or_one_in_all(tmp_path: Path) -> None:
    whole = data.DataSet("small", truth.EUCLIDEAN, lambda place: data.synth128(place, rows=200, dim=4))
    child = adapter_child.Child(Exact(), data.ensure(whole, tmp_path), truth.EUCLIDEAN)
    single = child.point(7, False)
    assert (single["recall"], single["effort"], child.adapter.calls) == (1.0, 7, 1000)
    assert single["qps"] > 0 and single["qps_batched"] is None
    batched = child.point(7, True)
    assert child.adapter.calls == 1001
    assert batched["qps_batched"] > 0 and batched["qps"] is None
    assert child.ready()["bytes_per_vector"] is None


SCRIPT = """
import json, sys
print(json.dumps({"ready": {"batches": False}}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    if request["effort"] == 3:
        sys.exit("broken pipe of thoughts")
    print(json.dumps({"error": "no"} if request["batched"] else {"effort": request["effort"]}), flush=True)
"""


def test_a_system_is_asked_and_says_why_it_fails(tmp_path: Path) -> None:
    plan = systems.Plan("fake", (sys.executable, "-c", SCRIPT), (1,), "settings")
    system = systems.System(plan, tmp_path / "log")
    try:
        assert system.ready == {"batches": False, "settings": "settings"}
        assert system.point(2, False) == {"effort": 2}
        with pytest.raises(systems.NotMeasured, match="^no$"):
            system.point(2, True)
        with pytest.raises(systems.NotMeasured, match="ended \\(1\\): broken pipe of thoughts"):
            system.point(3, False)
    finally:
        system.stop()


def test_what_does_not_start_is_not_measured(tmp_path: Path) -> None:
    for command in ((str(tmp_path / "none"),), (sys.executable, "-c", "print('hello')")):
        with pytest.raises(systems.NotMeasured):
            systems.System(systems.Plan("fake", command, (1,)), tmp_path / "log")
    found = compare.measure([systems.Plan("fake", (str(tmp_path / "none"),), (1,))], 2, tmp_path)
    assert "does not start" in (found[0].not_measured or "")


def results() -> list[Result]:
    """A reference, one twice as fast that takes no batches, and one that could not be had."""
    ready = {"build_cpu_s": 10.0, "bytes_per_vector": 600.0, "settings": "x"}
    slow = [{**point, "qps_batched": point["qps"] * 1.1} for point in points((0.85, 200.0), (0.999, 100.0))]
    fast = points((0.85, 400.0), (0.999, 200.0))
    return [
        Result("longbow-hnsw", ready | {"build_cpu_s": 5.0}, [fast, fast]),
        Result("hnswlib", ready, [slow, slow]),
        Result("scann", not_measured="No module named 'scann'"),
    ]


def test_rows_are_in_ratio_to_the_reference() -> None:
    ours, reference, missing = ann_report.rows(results())
    assert ours["build_ratio"] == 0.5
    assert [at["qps_ratio"] for at in ours["at_recall"]] == [2.0, 2.0, 2.0]
    assert [at["qps_batched_ratio"] for at in ours["at_recall"]] == [pytest.approx(2 / 1.1, abs=1e-3)] * 3
    assert reference["at_recall"][0]["qps_ratio_range"] == [1.0, 1.0]
    assert missing == {"system": "scann", "not_measured": "No module named 'scann'"}


def report() -> dict[str, Any]:
    """One set of those results, and one that could not be made."""
    machine = {"cpu": "c", "cores": 2, "memory_mb": 1, "kernel": "k", "commit": "a", "load_before": 0.1}
    about = {"name": "small", "rows": 1000, "dim": 4, "metric": "euclidean", "queries": 10}
    sets = [{**about, "systems": ann_report.rows(results())}]
    sets.append({"name": "other", "not_measured": "no apt-get", "systems": []})
    return {"machine": machine, "rounds": 2, "load_after": 0.2, "sets": sets}


def test_the_table_hides_nothing() -> None:
    text = ann_report.render(report())
    assert "scann: not measured: No module named 'scann'" in text
    assert "other: not measured: no apt-get" in text
    assert "small: 1,000 x 4, euclidean, 10 queries" in text


def test_the_picture_has_a_curve_for_each_measured_system() -> None:
    picture = plot.svg(compare.panels(report()))
    assert picture.count("<polyline") == 2
    assert "longbow-hnsw" in picture and "scann" not in picture
    assert plot.x_of(0.99) - plot.x_of(0.9) == pytest.approx(plot.x_of(0.999) - plot.x_of(0.99))
    assert plot.x_of(1.0) == plot.WIDTH - plot.RIGHT
    assert plot.ticks(150, 2_500) == [200, 500, 1000, 2000]


def test_the_command_line_knows_what_there_is() -> None:
    args = compare.arguments(["--quick", "--only", "hnswlib,longbow-hnsw", "--sets", "synth128"])
    assert (args.rounds, args.rows) == (2, compare.QUICK_ROWS)
    assert [each.name for each in args.sets] == ["synth128"]
    for wrong in (["--only", "nothing"], ["--sets", "nothing"], ["--rounds", "0"]):
        with pytest.raises(SystemExit):
            compare.arguments(wrong)


def test_packages_are_exact() -> None:
    listed = venv_ann.packages(venv_ann.LIST.read_text())
    assert "hnswlib==0.8.0" in listed
    assert all(package.count("==") == 1 for package in listed)
