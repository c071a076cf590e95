"""Record batches as they arrive."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.flight as flight

from .closing import Closing
from .errors import translate, translated


class BatchStream(Closing):
    """An iterator of record batches that one call streams back.

    Nothing is buffered beyond what the transport holds: what is not read is
    not sent. Leaving it early, by ``close()`` or the end of a ``with`` block,
    cancels the call.

    >>> with client.download_stream("books") as stream:
    ...     sum(batch.num_rows for batch in stream)
    4
    """

    def __init__(self, reader: flight.FlightStreamReader) -> None:
        self._reader = reader
        self._done = False

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of every batch; waits for the server to send it."""
        with translated():
            return self._reader.schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        while not self._done:
            try:
                chunk = self._reader.read_chunk()
            except StopIteration:
                self._done = True
                self._ended(None)
                break
            except pa.ArrowException as error:
                self._done = True
                self._ended(error)
                break
            if chunk.app_metadata is not None:
                self._told(chunk.app_metadata.to_pybytes())
            if chunk.data is not None:
                return chunk.data
        raise StopIteration

    def _told(self, metadata: bytes) -> None:
        """A message came with metadata."""

    def _ended(self, error: pa.ArrowException | None) -> None:
        """The server has ended the stream, with an error or without."""
        if error is not None:
            raise translate(error) from error

    def read_all(self) -> pa.Table:
        """The rest as one table."""
        # The batches first: where the stream fails, they tell why.
        batches = list(self)
        return pa.Table.from_batches(batches, schema=self.schema)

    def to_reader(self) -> pa.RecordBatchReader:
        """The rest as Arrow's own reader, for libraries that take one."""
        return pa.RecordBatchReader.from_batches(self.schema, self)

    def close(self) -> None:
        """Cancels the call, unless it is over."""
        if not self._done:
            self._done = True
            self._reader.cancel()
