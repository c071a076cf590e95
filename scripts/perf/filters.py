"""The `--filter` flag: to the contract's JSON, and to a mask over the rows that the script knows."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from .data import CATEGORIES, EPOCH_US

_OPERATORS = {
    **dict.fromkeys(("=", "==", "eq"), operator.eq),
    **dict.fromkeys(("!=", "<>", "ne", "neq"), operator.ne),
    **dict.fromkeys((">", "gt"), operator.gt),
    **dict.fromkeys((">=", "ge", "gte"), operator.ge),
    **dict.fromkeys(("<", "lt"), operator.lt),
    **dict.fromkeys(("<=", "le", "lte"), operator.le),
}


def parse(text: str) -> dict[str, Any]:
    """`field:operator:value` to a filter object; the value stays a string, the server casts it."""
    parts = text.split(":", 2)
    if len(parts) != 3 or not parts[0] or not parts[1]:
        raise ValueError(f"--filter {text!r}: write field:operator:value, for example category:=:3")
    return {"field": parts[0], "operator": parts[1], "value": parts[2]}


def mask(filters: list[dict[str, Any]], ids: list) -> np.ndarray | None:
    """Which of the generated rows pass all filters; None where the script cannot tell (the server still can)."""
    if not all(isinstance(row_id, int) for row_id in ids[:1]):
        return None
    numbers = np.array(ids, dtype=np.int64)
    columns = {"id": numbers, "category": numbers % CATEGORIES, "timestamp": EPOCH_US + numbers * 1000}
    passed = np.ones(len(ids), dtype=bool)
    for item in filters:
        compare = _OPERATORS.get(str(item["operator"]).lower())
        try:
            value = int(item["value"])
        except (TypeError, ValueError):
            return None
        if compare is None or item["field"] not in columns:
            return None
        passed &= compare(columns[item["field"]], value)
    return passed
