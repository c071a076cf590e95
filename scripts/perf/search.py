"""Searches, one after another on one connection: plain, filtered, hybrid, by id."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight

from .client import Skipped, action, error_text, get, is_unimplemented, query_info, search_ticket
from .exact import Truth
from .filters import mask as filter_mask
from .result import Result
from .run import Run, plain_vector

WARMUP = 50


@dataclass
class Answers:
    """What a row of calls gave: latencies in milliseconds, replies (None where a call failed), errors."""

    latencies_ms: list[float] = field(default_factory=list)
    replies: list[Any] = field(default_factory=list)
    errors: int = 0
    first_error: str | None = None
    elapsed: float = 0.0


def ask(call: Callable[[Any], Any], inputs: Sequence[Any], warmup: int = WARMUP) -> Answers:
    """Calls for each input in turn, after warming up with the first of them; Unimplemented raises `Skipped`."""
    answers = Answers()
    for value in inputs[:warmup]:
        _guarded(call, value, Answers())
    begin = time.perf_counter()
    for value in inputs:
        start = time.perf_counter()
        reply = _guarded(call, value, answers)
        if reply is not None:
            answers.latencies_ms.append((time.perf_counter() - start) * 1e3)
        answers.replies.append(reply)
    answers.elapsed = time.perf_counter() - begin
    return answers


def _guarded(call: Callable[[Any], Any], value: Any, answers: Answers) -> Any:
    try:
        return call(value)
    except (pa.ArrowException, flight.FlightError) as error:
        if is_unimplemented(error):
            raise Skipped(error_text(error)) from error
        answers.errors += 1
        answers.first_error = answers.first_error or error_text(error)
        return None


def search_options(run: Run, **more: Any) -> dict[str, Any]:
    """The options of the command line that every search ticket carries."""
    options: dict[str, Any] = {"ef": run.args.ef}
    if run.args.all_nodes:
        options["local_only"] = False
    options.update(more)
    return options


def _summary(name: str, answers: Answers, extra: dict[str, Any]) -> Result:
    tables = [reply for reply in answers.replies if isinstance(reply, pa.Table)]
    done = len(answers.latencies_ms)
    return Result(
        name,
        answers.elapsed,
        done / answers.elapsed if answers.elapsed else 0.0,
        "queries/s",
        sum(table.num_rows for table in tables),
        sum(table.nbytes for table in tables),
        answers.latencies_ms,
        answers.errors,
        answers.first_error,
        extra=extra,
    )


def _server_side(tables: list[pa.Table], k: int) -> dict[str, Any]:
    """What the replies say of themselves: the server's own time, the plan, and short answers."""
    infos = [query_info(table) for table in tables]
    extra: dict[str, Any] = {}
    times = [info["elapsed_us"] for info in infos if "elapsed_us" in info]
    if times:
        extra["server_p50_ms"] = round(float(np.percentile(times, 50)) / 1e3, 4)
    if plans := sorted({str(info["strategy"]) for info in infos if "strategy" in info}):
        extra["strategy"] = ",".join(plans)
    short = [info for table, info in zip(tables, infos, strict=True) if table.num_rows < k]
    if short:
        extra["short_replies"] = len(short)
        extra["short_unexplained"] = sum("short_because" not in info for info in short)
    return extra


def test_search(run: Run, name: str = "search", filters: Any = None, allowed: Any = None) -> Result:
    """Nearest neighbours of held-out points, with recall@k against numpy.

    `allowed`, a mask of the rows that pass `filters` (None: taken from the flag's own filters).
    """
    k = run.args.search_k
    queries, _ = run.queries(run.args.query_count)
    options = search_options(run, filters=filters)
    tickets = [search_ticket(run.name, plain_vector(query), k, **options) for query in queries]
    answers = ask(partial(get, run.servers.data), tickets)
    tables = [reply for reply in answers.replies if reply is not None]
    extra: dict[str, Any] = {"k": k, "queries": len(queries), **_server_side(tables, k)}
    truth = run.truth()
    if filters and allowed is None:
        allowed = filter_mask(filters, truth.ids)
    if not filters or allowed is not None:
        extra |= _recall(truth, queries, answers.replies, k, allowed)
    if allowed is not None:
        extra["selectivity"] = round(float(allowed.mean()), 4)
    return _summary(name, answers, extra)


def _recall(truth: Truth, queries: np.ndarray, replies: list, k: int, allowed: Any) -> dict[str, Any]:
    count = truth.affordable_queries(len(queries))
    ids = [reply["id"].to_pylist() if reply is not None else [] for reply in replies[:count]]
    recall = truth.recall(queries, ids, k, allowed)
    return {"recall": None if recall is None else round(recall, 5), "recall_queries": count}


def test_filtered(run: Run) -> Result:
    """A search among the rows that pass `--filter`, or among one row in ten."""
    filters = run.args.filter or [{"field": "category", "operator": "=", "value": 3}]
    return test_search(run, "search_filtered", filters)


def test_complex_filter(run: Run) -> Result:
    """A search under a nested filter: (category is 1 or 2) and category is not 2."""
    either = [{"field": "category", "operator": "=", "value": value} for value in (1, 2)]
    filters = [
        {"logic": "OR", "filters": either},
        {"logic": "NOT", "filters": [{"field": "category", "operator": "=", "value": 2}]},
    ]
    allowed = filter_mask([{"field": "category", "operator": "=", "value": 1}], run.truth().ids)
    return test_search(run, "search_nested_filter", filters, allowed)


def test_hybrid(run: Run) -> Result:
    """Vector and text together, fused by the server with `--alpha`."""
    k = run.args.search_k
    queries, texts = run.queries(run.args.query_count)
    options = search_options(run, alpha=run.args.alpha, text_columns=[run.args.text_field])
    tickets = [
        search_ticket(run.name, plain_vector(query), k, text_query=text, **options)
        for query, text in zip(queries, texts, strict=True)
    ]
    answers = ask(partial(get, run.servers.data), tickets)
    tables = [reply for reply in answers.replies if reply is not None]
    result = _summary("hybrid", answers, {"k": k, "alpha": run.args.alpha, **_server_side(tables, k)})
    unordered = sum(not _descending(table["score"].to_numpy()) for table in tables)
    if unordered:
        result.errors += unordered
        result.first_error = result.first_error or f"{unordered} replies are not ordered by falling score"
    return result


def _descending(scores: np.ndarray) -> bool:
    return bool((np.diff(scores) <= 0).all())


def test_by_id(run: Run) -> Result:
    """`VectorSearchByID`: the rows most like a stored one."""
    k = run.args.search_k
    truth = run.truth()
    rng = np.random.default_rng(run.spec.seed)
    rows = rng.integers(0, len(truth.ids), run.args.query_count)
    own = [truth.ids[row] for row in rows]
    client = run.servers.data

    def call(row_id: Any) -> Any:
        body = {"dataset": run.name, "id": row_id, "k": k}
        return json.loads(action(client, "VectorSearchByID", body)[0])

    answers = ask(call, own)
    count = truth.affordable_queries(len(rows))
    ids = [reply["ids"] if reply else [] for reply in answers.replies[:count]]
    recall = truth.recall(truth.vectors[rows], ids, k, own=own)
    extra = {"k": k, "recall": None if recall is None else round(recall, 5), "recall_queries": count}
    result = _summary("id_search", answers, extra)
    result.rows = sum(len(reply["ids"]) for reply in answers.replies if reply)
    return result
