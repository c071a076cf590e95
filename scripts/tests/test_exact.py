"""The truth: exact neighbours against a plain sort, and recall that can be less than one."""

import numpy as np
import pytest
from perf.exact import ROW_BLOCK, Truth
from perf.filters import mask, parse


def plain(vectors, query, metric):
    x, q = vectors.astype(np.float64), query.astype(np.float64)
    if metric == "euclidean":
        return ((x - q) ** 2).sum(axis=1)
    if metric == "cosine":
        return 1 - x @ q / np.linalg.norm(x, axis=1) / np.linalg.norm(q)
    return -(x @ q)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "dot_product"])
@pytest.mark.parametrize("rows", [3, 500, ROW_BLOCK + 100])
def test_nearest_is_what_a_sort_gives(metric, rows):
    rng = np.random.default_rng(rows)
    vectors = rng.standard_normal((rows, 12), dtype=np.float32)
    queries = rng.standard_normal((5, 12), dtype=np.float32)
    allowed = rng.random(rows) < 0.5
    allowed[:3] = True
    truth = Truth(list(range(rows)), vectors, metric)
    for query, found, filtered in zip(
        queries, truth.nearest(queries, 10), truth.nearest(queries, 10, allowed), strict=True
    ):
        order = np.argsort(plain(vectors, query, metric), kind="stable")
        assert found.tolist() == order[:10].tolist()
        assert filtered.tolist() == [row for row in order if allowed[row]][:10]


@pytest.fixture
def line():
    """Rows at 0, 1, 2, ... on a line, with ids from 100."""
    vectors = np.zeros((50, 2), dtype=np.float32)
    vectors[:, 0] = np.arange(50)
    return Truth([100 + row for row in range(50)], vectors, "euclidean")


QUERY = np.array([[-0.25, 0.0]], dtype=np.float32)


@pytest.mark.parametrize(
    ("reply", "recall"),
    [
        ([100, 101, 102, 103], 1.0),
        ([103, 102, 101, 100], 1.0),
        ([100, 101], 0.5),
        ([100, 100, 100, 100], 0.25),
        ([100, 101, 102, 140], 0.75),
        ([7, 8, 9, 10], 0.0),
        ([], 0.0),
    ],
)
def test_recall_counts_right_ids_once(line, reply, recall):
    assert line.recall(QUERY, [reply], 4) == recall


def test_recall_takes_ties_but_not_forbidden_rows():
    truth = Truth([0, 1, 2, 3], np.array([[1.0], [1.0], [1.0], [5.0]], dtype=np.float32), "euclidean")
    query = np.zeros((1, 1), dtype=np.float32)
    assert truth.recall(query, [[2]], 1) == 1.0
    assert truth.recall(query, [[2]], 1, mask=np.array([True, True, False, True])) == 0.0


def test_recall_leaves_the_asked_row_out_on_both_sides(line):
    asked = line.vectors[:1]
    assert line.recall(asked, [[100, 101, 102]], 3, own=[100]) == 1.0
    assert line.recall(asked, [[101, 102, 103]], 3, own=[100]) == 1.0
    assert line.recall(asked, [[101, 102, 149]], 3, own=[100]) == pytest.approx(2 / 3)


def test_filter_mask_is_what_the_server_should_give():
    ids = list(range(30))
    assert np.flatnonzero(mask([parse("category:=:3")], ids)).tolist() == [3, 13, 23]
    assert np.flatnonzero(mask([parse("id:>=:10"), parse("id:<:12")], ids)).tolist() == [10, 11]
    assert mask([parse("meta:contains:oak")], ids) is None
    with pytest.raises(ValueError, match="field:operator:value"):
        parse("category=3")
