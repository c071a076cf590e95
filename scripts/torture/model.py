"""What one writer's rows of one dataset should be, kept as plainly as can be."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from .rows import group

State = dict[int, int]
# Changes a state as one entry of the log would.
Op = Callable[[State], None]


def put(rows: list[tuple[int, int]]) -> Op:
    """Each row takes the place of the one with its key; the last of a batch wins."""
    return lambda state: state.update(rows)


def delete(keys: list[int]) -> Op:
    """Rows go by key."""

    def apply(state: State) -> None:
        for key in keys:
            state.pop(key, None)

    return apply


def delete_group(number: int) -> Op:
    """Rows go by the value of a column."""

    def apply(state: State) -> None:
        for key in [key for key, version in state.items() if group(version) == number]:
            del state[key]

    return apply


@dataclass
class Verdict:
    """How the rows that were found differ from those that were acknowledged; counts of keys."""

    lost: int = 0
    back: int = 0
    stale: int = 0
    other: int = 0


# Versions that are remembered of one writer and dataset.
WRITTEN = 400


@dataclass
class Model:
    """Rows as acknowledged, and the operations on their way: a beginning of those may have happened."""

    rows: State = field(default_factory=dict)
    pending: list[Op] = field(default_factory=list)
    acknowledged: int = 0
    # Rows that were sent last, in order.
    written: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=WRITTEN))

    def send(self, *ops: Op) -> None:
        """Operations go out, in this order."""
        self.pending.extend(ops)

    def acknowledge(self) -> None:
        """The oldest of them is acknowledged."""
        self.pending.pop(0)(self.rows)
        self.acknowledged += 1

    def gone(self) -> State:
        """Of the rows that were sent last, keys and versions that are not there."""
        return {key: version for key, version in self.written if self.rows.get(key) != version}

    def settle(self, found: State) -> Verdict:
        """Compares with the rows that a restarted server has, and goes on with those."""
        verdict = Verdict()
        candidate = dict(self.rows)
        ops = list(self.pending)
        while candidate != found and ops:
            ops.pop(0)(candidate)
        if candidate != found:
            verdict = self._judge(found)
        self.rows, self.pending = dict(found), []
        return verdict

    def _judge(self, found: State) -> Verdict:
        """What is wrong with rows that are no beginning of what was sent."""
        verdict = Verdict()
        after, touched = dict(self.rows), set()
        for op in self.pending:
            before = dict(after)
            op(after)
            touched |= {key for key in {*before, *after} if before.get(key) != after.get(key)}
        for key in {*self.rows, *found} - touched:
            kept, seen = self.rows.get(key), found.get(key)
            verdict.lost += kept is not None and seen is None
            verdict.back += kept is None and seen is not None
            verdict.stale += kept is not None and seen is not None and seen < kept
            verdict.other += kept is not None and seen is not None and seen > kept
        if verdict == Verdict():
            # Each key alone may be explained, all of them together cannot: a batch that happened in part.
            verdict.other = 1
        return verdict
