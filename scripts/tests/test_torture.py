"""The torture test's own model: it must see each kind of loss, and must not see one where there is none."""

import numpy as np
import pytest
from torture.model import Model, Verdict, delete, delete_group, put
from torture.rows import KINDS, group


def model() -> Model:
    """Three rows acknowledged; two puts and a deletion on their way."""
    made = Model()
    made.send(put([(1, 10), (2, 12), (3, 14), (2, 16)]))
    made.acknowledge()
    made.send(put([(4, 20), (5, 22)]), put([(1, 24)]), delete([3]))
    return made


START = {1: 10, 2: 16, 3: 14}


@pytest.mark.parametrize(
    "found",
    [
        START,
        {**START, 4: 20, 5: 22},
        {**START, 4: 20, 5: 22, 1: 24},
        {2: 16, 4: 20, 5: 22, 1: 24},
    ],
)
def test_any_beginning_of_what_was_sent_is_right(found) -> None:
    made = model()
    assert made.settle(dict(found)) == Verdict()
    assert made.rows == found and made.pending == []


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({1: 10, 3: 14}, Verdict(lost=1)),
        ({**START, 9: 8}, Verdict(back=1)),
        ({**START, 2: 12}, Verdict(stale=1)),
        ({**START, 2: 18}, Verdict(other=1)),
        # Half of a batch, and a later write without an earlier one.
        ({**START, 4: 20}, Verdict(other=1)),
        ({**START, 1: 24}, Verdict(other=1)),
    ],
)
def test_what_is_wrong_is_seen(found, expected) -> None:
    assert model().settle(dict(found)) == expected


def test_versions_that_were_replaced_deleted_or_never_taken_are_gone() -> None:
    made = model()
    made.written.extend([(1, 10), (2, 12), (2, 16), (4, 20)])
    assert made.gone() == {2: 12, 4: 20}
    made.settle({1: 10, 4: 20})
    assert made.gone() == {2: 16}


def test_a_deletion_by_group_takes_the_rows_of_the_group() -> None:
    made = Model()
    made.send(put([(key, key * 2) for key in range(30)]), delete_group(3))
    made.acknowledge()
    made.acknowledge()
    assert made.acknowledged == 2
    assert sorted(made.rows) == [key for key in range(30) if group(key * 2) != 3]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_rows_follow_from_their_versions(kind) -> None:
    versions = np.arange(1, 40)
    table = kind.columns(np.arange(100, 139), versions, late=True)
    assert [kind.key(name) for name in table["id"].to_pylist()] == list(range(100, 139))
    assert table["late"].null_count == sum(version % 2 == 0 for version in versions.tolist())
    assert len(np.unique(kind.vectors(versions), axis=0)) == len(versions)
    assert table.schema.equals(kind.schema(True))
