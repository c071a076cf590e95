"""The answers to many queries, message by message."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from .results import QUERY_KEY
from .stream import BatchStream

#: What a message tells as a mean over its queries; whatever else is a number is a sum.
_MEANS = ("ef", "recall_expected")


class AnswerStream(BatchStream):
    """Record batches that answer queries, and how far that has come.

    Attributes:
        queries_done: queries answered by the batches that were read.
        queries_asked: queries that the server had taken by then.

    >>> with client.knn_join("books", [[0.1, 0.2, 0.3]] * 600, k=1) as answers:
    ...     for batch in answers:
    ...         print(answers.queries_done, batch.num_rows)
    512 512
    600 88
    """

    def __init__(self, reader: flight.FlightStreamReader) -> None:
        super().__init__(reader)
        self.queries_done = 0
        self.queries_asked = 0
        self._info: dict[str, Any] = {}
        # Of each mean: its sum over queries, and how many those are.
        self._means = {name: (0.0, 0) for name in _MEANS}

    def _told(self, metadata: bytes) -> None:
        told = json.loads(metadata)
        before = self.queries_done
        self.queries_done = told.get("queries_done", self.queries_done)
        self.queries_asked = told.get("queries_asked", self.queries_asked)
        queries = self.queries_done - before
        for name, value in told.get("query", {}).items():
            # Figures add up; words are those of the first message that has them.
            if name in _MEANS:
                total, count = self._means[name]
                self._means[name] = total + value * queries, count + queries
            elif isinstance(value, int):
                self._info[name] = self._info.get(name, 0) + value
            else:
                self._info.setdefault(name, value)

    def read_all(self) -> pa.Table:
        """The rest as one table, with the :class:`longbow.QueryInfo` of all messages."""
        table = super().read_all()
        if not self._info:
            return table
        told = json.dumps({**self._info, **self._averaged()}).encode()
        metadata = {**(table.schema.metadata or {}), QUERY_KEY: told}
        return table.replace_schema_metadata(metadata)

    def _averaged(self) -> dict[str, Any]:
        """The means over the queries of all messages, as the server takes them of one."""
        means: dict[str, Any] = {}
        total, count = self._means["ef"]
        if count:
            means["ef"] = int(total / count + 0.5)
        # Of a part of the queries it would say nothing of all.
        total, count = self._means["recall_expected"]
        if count and count == self.queries_done:
            means["recall_expected"] = total / count
        return means
