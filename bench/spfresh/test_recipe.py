"""The recipe's data, and a small run of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from compare_recipe import medians, table
from recipe import Recipe, recall
from recipe_child import measure


def test_the_same_seed_makes_the_same_data() -> None:
    one, other = (Recipe.made(8, 100, 50, 5, 404) for _ in range(2))
    assert np.array_equal(one.base, other.base) and np.array_equal(one.updates, other.updates)
    assert one.base.shape == (100, 8) and one.queries.shape == (5, 8)
    assert np.abs(one.base).max() <= 1 < np.abs(one.updates[:, 4:]).max() <= 2.5


def test_of_one_id_in_a_batch_the_last_counts() -> None:
    rows = np.arange(10, dtype=np.float32).reshape(5, 2)
    recipe = Recipe(np.zeros((3, 2), np.float32), np.array([1, 0, 1, 2, 1]), rows, rows[:1])
    batches = [(ids.tolist(), vectors.tolist()) for ids, vectors in recipe.batches(3)]
    assert batches == [([0, 1], [[2, 3], [4, 5]]), ([2, 1], [[6, 7], [8, 9]])]
    # Nearest to (0, 1): 0 is at (2, 3), 2 at (6, 7), 1 at (8, 9).
    assert recipe.truth().tolist() == [[0, 2, 1]]


def test_a_file_of_json_is_read(tmp_path: Path) -> None:
    told = {
        "base": [{"id": 1, "values": [3, 4]}, {"id": 0, "values": [1, 2]}],
        "updates": [[1, [5, 6]]],
        "queries": [[0, 0]],
    }
    path = tmp_path / "set.json"
    path.write_text(json.dumps(told))
    recipe = Recipe.read(path)
    assert recipe.base.tolist() == [[1, 2], [3, 4]]
    recipe.save(tmp_path / "set.npz")
    again = Recipe.load(tmp_path / "set.npz")
    assert again.updates.tolist() == [[5, 6]] and again.update_ids.tolist() == [1]


def test_recall_is_the_share_of_the_truth() -> None:
    assert recall([np.array([1, 2]), np.array([4])], np.array([[2, 3], [4, 5]])) == 0.5


def test_a_small_run(tmp_path: Path) -> None:
    recipe = Recipe.made(16, 1_000, 200, 20, 1)
    rounds = [
        measure(name, recipe, tmp_path / str(place), 64)
        for place, name in enumerate(["longbow-exact", "longbow-spfresh:4096", "longbow-exact+durable"])
    ]
    exact, postings, durable = (one["recall_at_k"] for one in rounds)
    assert exact == durable == 1.0 and postings > 0.95
    assert all(one["update_qps"] > 0 and one["search_qps"] > 0 for one in rounds)
    rows = [medians(rounds, one["database"]) for one in rounds]
    assert table(rows).count("\n") == 4
