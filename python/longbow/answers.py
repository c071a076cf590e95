"""The answers to many queries, message by message."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from .results import QUERY_KEY
from .stream import BatchStream


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

    def _told(self, metadata: bytes) -> None:
        told = json.loads(metadata)
        self.queries_done = told.get("queries_done", self.queries_done)
        self.queries_asked = told.get("queries_asked", self.queries_asked)
        for name, value in told.get("query", {}).items():
            # Figures add up; words are those of the first message that has them.
            if isinstance(value, int):
                self._info[name] = self._info.get(name, 0) + value
            else:
                self._info.setdefault(name, value)

    def read_all(self) -> pa.Table:
        """The rest as one table, with the :class:`longbow.QueryInfo` of all messages."""
        table = super().read_all()
        if not self._info:
            return table
        metadata = {**(table.schema.metadata or {}), QUERY_KEY: json.dumps(self._info).encode()}
        return table.replace_schema_metadata(metadata)
