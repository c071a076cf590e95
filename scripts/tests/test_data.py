"""The generated data: the same each time, of the type that was asked for, cut into whole batches."""

import numpy as np
import pyarrow as pa
import pytest
from perf.data import BLOCK, DTYPES, Mixture, Spec, vectors_of


@pytest.mark.parametrize("dtype", DTYPES)
def test_batches_hold_all_rows_of_the_type(dtype):
    spec = Spec(250, 8, dtype, text_field="meta")
    mixture = Mixture(spec)
    table = pa.Table.from_batches(list(mixture.batches()), mixture.schema())
    assert table["id"].to_pylist() == list(range(250))
    assert table.schema.field("vector").type == pa.list_(pa.from_numpy_dtype(spec.element), spec.width)
    assert (vectors_of(table["vector"]) == mixture.vectors(250)).all()
    assert np.isfinite(mixture.vectors(250).astype(np.float64)).all()


def test_batches_cross_blocks_without_a_gap():
    mixture = Mixture(Spec(BLOCK * 2 + 37, 4))
    ids = np.concatenate([batch["id"].to_numpy() for batch in mixture.batches()])
    assert (ids == np.arange(BLOCK * 2 + 37)).all()


def test_the_same_seed_gives_the_same_data_and_another_does_not():
    spec = Spec(100, 8, seed=1)
    assert (Mixture(spec).vectors(100) == Mixture(spec).vectors(100)).all()
    assert (Mixture(spec).vectors(100) != Mixture(Spec(100, 8, seed=2)).vectors(100)).any()


def test_queries_are_held_out_but_near():
    mixture = Mixture(Spec(2000, 16))
    rows, (queries, texts) = mixture.vectors(2000), mixture.queries(50)
    nearest = np.sqrt(((queries[:, None] - rows[None]) ** 2).sum(axis=2)).min(axis=1)
    spread = np.sqrt(((queries[:, None] - queries[None]) ** 2).sum(axis=2)).mean()
    assert (nearest > 0).all() and nearest.mean() < 0.7 * spread
    assert len(texts) == 50


def test_large_vectors_make_small_batches():
    spec = Spec(10_000, 3072)
    assert spec.batch_rows * spec.width * 4 <= 8 << 20
