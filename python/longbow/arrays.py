"""Replies of searches as numpy arrays."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

#: What stands in a place without a row, by the kind of id.
_NOTHING = {"int64": -1, "uint64": 2**64 - 1, "object": None}


def columns(reply: pa.Table) -> tuple[Any, Any]:
    """The ids and distances of a reply to one query."""
    return _ids(reply["id"]), reply["distance"].to_numpy()


def places(reply: pa.Table, queries: int, k: int) -> tuple[Any, Any]:
    """The ids and distances of a reply to several queries, ``k`` places to each."""
    import numpy

    ids, distances = columns(reply)
    if len(ids) == queries * k:
        return ids.reshape(queries, k), distances.reshape(queries, k)
    of = reply["query_index"].to_numpy()
    # Rows come query by query: a row's place is its distance from the first of its query.
    rank = numpy.arange(len(of)) - numpy.searchsorted(of, of, side="left")
    all_ids = numpy.full((queries, k), _NOTHING[str(ids.dtype)], ids.dtype)
    all_distances: Any = numpy.full((queries, k), numpy.inf, numpy.float32)
    all_ids[of, rank], all_distances[of, rank] = ids, distances
    return all_ids, all_distances


def _ids(column: pa.ChunkedArray) -> Any:
    kind = column.type
    if pa.types.is_string(kind):
        import numpy

        return numpy.array(column.to_pylist(), object)
    wide = pa.uint64() if kind == pa.uint64() else pa.int64()
    return column.cast(wide).to_numpy()
