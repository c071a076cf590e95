"""A child that holds one of the databases."""

from __future__ import annotations

from typing import Any

from line_child import LineChild, NotMeasured

__all__ = ["NotMeasured", "Process"]


class Process(LineChild):
    """Takes requests by name."""

    def ask(self, do: str, seconds: float, **request: Any) -> dict[str, Any]:
        """The answer to one request, which must come within so many seconds."""
        self.send({"do": do, **request})
        try:
            return self.answer(seconds)
        except NotMeasured as why:
            raise NotMeasured(f"{do}: {why}") from None
