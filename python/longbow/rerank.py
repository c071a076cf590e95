"""A second opinion on the best rows of a search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .errors import InvalidArgument

#: Gives each row of a reply a score, higher is better: a cross-encoder, say.
Rerank = Callable[[pa.Table], Sequence[float]]


def check_rerank(rerank: Any, rerank_from: int | None, cursor: str | None) -> None:
    """Refuses what is no function, how many rows to give to none, and pages of what it scores."""
    if rerank is not None and cursor is not None:
        text = "cursor is given; expected no cursor with rerank, which takes more than a page"
        raise InvalidArgument("bad_value", text)
    if rerank is None and rerank_from is not None:
        text = f"rerank_from is {rerank_from}, and there is no rerank; give a function"
        raise InvalidArgument("bad_value", text)
    if rerank is not None and not callable(rerank):
        text = f"rerank is of type {type(rerank).__name__}; expected a function"
        raise InvalidArgument("bad_rerank", text)


def reranked(found: pa.Table, rerank: Rerank, k: int) -> pa.Table:
    """The best ``k`` of the rows by the scores of ``rerank``, which take the place of their own."""
    if "query_index" in found.column_names:
        raise InvalidArgument("many_queries", "rerank is for a single query; search one by one")
    given: Any = rerank(found)
    try:
        scores: Any = pa.array(given, pa.float32())
    except (pa.ArrowException, TypeError, ValueError) as error:
        text = f"rerank gave {type(given).__name__} ({error}); give a number for each row"
        raise InvalidArgument("bad_rerank", text) from error
    if len(scores) != found.num_rows or scores.null_count or pc.any(pc.is_nan(scores)).as_py():
        text = f"rerank gave {len(scores)} scores for {found.num_rows} rows; give each a number"
        raise InvalidArgument("bad_rerank", text)
    at = found.column_names.index("score")
    found = found.set_column(at, found.schema.field("score"), pa.chunked_array([scores]))
    order = pc.sort_indices(scores, sort_keys=[("", "descending")])
    return found.take(order[:k])
