"""What the end of a ``with`` block closes, or that of the interpreter."""

from __future__ import annotations

import atexit
import contextlib
import os
import weakref
from types import TracebackType
from typing import TypeVar

S = TypeVar("S", bound="Closing")


class Closing:
    """Closed by the end of a ``with`` block."""

    def close(self) -> None:
        """Ends it; it can't be used after."""
        raise NotImplementedError

    def _close_at_exit(self) -> None:
        self.close()

    def __enter__(self: S) -> S:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


# A thread that the interpreter's end finds inside pyarrow or the engine is torn
# down there, and may take the process with it. What has such threads is closed
# before.

#: Seconds that the interpreter's end waits for a thread which may be in the caller's code.
PATIENCE = 5.0
_open: weakref.WeakSet[Closing] = weakref.WeakSet()


def close_at_exit(one: Closing) -> None:
    """Closes ``one`` when the interpreter ends, unless it is gone by then."""
    _open.add(one)


@atexit.register
def _close_all() -> None:
    for one in list(_open):
        with contextlib.suppress(Exception):  # The others are to be closed too.
            one._close_at_exit()


if hasattr(os, "register_at_fork"):
    # They are the parent's, and their threads are not here.
    os.register_at_fork(after_in_child=_open.clear)
