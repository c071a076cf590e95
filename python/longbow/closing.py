"""What the end of a ``with`` block closes."""

from __future__ import annotations

from types import TracebackType
from typing import TypeVar

S = TypeVar("S", bound="Closing")


class Closing:
    """Closed by the end of a ``with`` block."""

    def close(self) -> None:
        """Ends it; it can't be used after."""
        raise NotImplementedError

    def __enter__(self: S) -> S:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
