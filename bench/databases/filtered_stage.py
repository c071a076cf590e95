"""Passes under filters: each system's own without any, then at each filter, at breadths of the search from low to high."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from filtered_report import Filtered, least_effort
from running import TIMES, Running, in_turns

#: One breadth more than finds this: more breadth can be less work, where it makes a system choose another way.
ENOUGH = 0.95

Points = list[dict[str, Any]]


def rising(sweep: list[int], pass_at: Callable[[int], dict[str, Any]]) -> Points:
    """Passes by rising breadth, up to one more than finds enough."""
    points: Points = []
    for effort in sweep:
        before = bool(points) and points[-1]["recall"] >= ENOUGH
        points.append(pass_at(effort))
        if before:
            break
    return points


def one_round(running: Running, filters: list[str], into: Filtered) -> None:
    """Passes without a filter, and under each. The breadth that is enough without one is always among them."""
    sweep = running.measured.built["sweep"]
    plain = rising(sweep, lambda effort: running.ask("pass", effort=effort, **TIMES))
    enough = least_effort(plain)
    found = {}
    for name in filters:

        def pass_at(effort: int, name: str = name) -> dict[str, Any]:
            return running.ask("filtered", effort=effort, where=name, **TIMES)

        points = rising(sweep, pass_at)
        if enough is not None and enough not in [point["effort"] for point in points]:
            points.append(pass_at(enough))
        found[name] = points
    into.plain.append(plain)
    into.rounds.append(found)


def measure(wanted: list[Running], rounds: int, filters: list[str]) -> list[Filtered]:
    """Builds all, alternates their passes."""
    found = {running: Filtered(running.measured) for running in wanted}
    in_turns(wanted, rounds, lambda running: one_round(running, filters, found[running]))
    return list(found.values())
