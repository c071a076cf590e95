"""A second opinion on the best rows of a search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .errors import InvalidArgument

#: Gives each row of a reply a score, higher is better: a cross-encoder, say.
Rerank = Callable[[pa.Table], Sequence[float]]


def check_rerank(rerank: Any, rerank_from: int | None) -> None:
    """Refuses what is no function, and how many to give to one where there is none."""
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
    scores: Any = rerank(found)
    scores = pa.array(scores, pa.float32())
    if len(scores) != found.num_rows or scores.null_count:
        text = f"rerank gave {len(scores)} scores for {found.num_rows} rows; give one for each"
        raise InvalidArgument("bad_rerank", text)
    at = found.column_names.index("score")
    found = found.set_column(at, found.schema.field("score"), pa.chunked_array([scores]))
    order = pc.sort_indices(scores, sort_keys=[("", "descending")])
    return found.take(order[:k])
