"""The half of the client that changes data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from .backend import Backend
from .checks import check_name, shown
from .errors import InvalidArgument
from .fit import Known, fitted
from .nulls import Nulls
from .progress import Progress, reporter
from .requests import Filters, delete_body, plain
from .results import InsertResult
from .rows import CHUNK_ROWS, Columns, Shaper, cut
from .source import frames, total_rows


class Writes:
    """Inserting and deleting rows."""

    _backend: Backend
    _known: Known

    def insert(
        self,
        dataset: str,
        data: Any,
        *,
        id: str | None = None,
        vector: None | str | Sequence[str] = None,
        ids: Any = None,
        metric: str | None = None,
        index: str | None = None,
        quantization: str | None = None,
        recall_target: float | None = None,
        text: Mapping[str, str] | None = None,
        dtype: str | None = None,
        batch_size: int | None = None,
        progress: Progress = None,
        routing_key: str | None = None,
        durable: bool = False,
        add_columns: bool = True,
    ) -> InsertResult:
        """Inserts rows; a row whose id is known already is replaced.

        The dataset is created by its first insert. When the call returns, every
        row is acknowledged, and the result says how safely. Rows are sent while
        later ones are being converted: after an exception, rows before the
        faulty one may be in the dataset, and inserting again is safe.

        Args:
            dataset: its name.
            data: a pandas, polars or Dask frame, a 2-D numpy array, an Arrow
                Table, RecordBatch or RecordBatchReader, a list of dicts, a dict
                of columns, anything with Arrow's stream interface, or an
                iterator of any of these. An index of pandas is not sent. What a
                mask of numpy's hides is null; vectors must not be masked. A
                column of nulls alone that the dataset does not have is left
                out, and the result's ``left_out`` names it.
            id: the column with the ids, integers or text; ``id`` by default.
            vector: the column or columns with vectors. By default ``vector``,
                or else the only column that holds lists of numbers.
            ids: the ids themselves, where no column has them. A 2-D array
                without them gets 0, 1, 2…
            metric: ``euclidean`` (the default of a new dataset), ``cosine`` or
                ``dot_product``.
            index: where vectors are found: ``hnsw`` (a graph in memory),
                ``spfresh`` (postings in a file, with a little memory for each
                row; for ``euclidean`` and ``cosine``), ``flat`` (no index: all
                rows are compared), or ``auto`` (one of these by the number of
                rows and the server's memory limit, moved from one to another
                as these change). The dataset's first insert decides; by
                default the server does.
            quantization: what the index holds of each vector: ``rabitq`` (codes),
                ``sq8`` (fewer codes: less memory, slower) or ``none`` (all of
                it). The dataset's first insert decides; by default the server
                does, by metric, type and dimension.
            recall_target: the share of the true neighbours that searches are to
                find which name neither a target nor an effort. The dataset's
                first insert decides.
            text: how the words of a text column are read, by column: ``default``,
                a language like ``en`` (word forms count as one), ``ngram`` (parts
                of words), or ``none`` (not searched). The first insert decides.
            dtype: the type to store vectors in, like ``float16``. By default
                that of the dataset; in a new one typed data keeps its own, and
                Python lists become ``float32``.
            batch_size: rows a message; by default as many as make 8 MB.
            progress: True, False, or a function of (rows, total or None). By
                default a line on a terminal, if there are many rows.
            routing_key: sent as the header ``x-longbow-key``.
            durable: rows are acknowledged only when they survive a loss of
                power, whatever the server's default is.
            add_columns: whether columns that the dataset does not have are
                added to it, for good; False refuses them, as those of a
                mistyped name.

        Raises:
            InvalidArgument: ragged vectors (the row is named), no ids, or a
                schema that is not the dataset's. Columns of another type of
                the same kind, like ``float64`` for ``float32``, are cast to the
                dataset's; ``value_does_not_fit`` if a value has no equal there.
            ResourceExhausted: the server's memory limit; nothing is wrong with
                the data.

        Example:
            >>> result = client.insert("notes", [
            ...     {"id": 1, "vector": [0.1, 0.9], "title": "first"},
            ...     {"id": 2, "vector": [0.8, 0.2], "title": "second"},
            ... ], metric="cosine")
            >>> result.rows, result.searchable
            (2, True)
        """
        check_name(dataset)
        columns = Columns(id, vector, ids, metric, dtype, index, quantization, recall_target, text)
        total = total_rows(data)
        batch_size = None if batch_size is None else _rows_a_message(batch_size)
        known = self._known
        nulls = Nulls(lambda: known.now(dataset), add_columns)
        step = max(batch_size or 0, CHUNK_ROWS)
        shaper = Shaper(columns, total, step, lambda: known.seen(dataset), nulls)
        batches = cut(shaper.batches(frames(data, columns.vector_name())), batch_size)
        result = self._backend.put(
            dataset,
            fitted(batches, dataset, known, vectors=dtype is None),
            durable=durable,
            add_columns=add_columns,
            routing_key=routing_key,
            report=reporter(progress, total),
        )
        left_out = tuple(nulls.left_out)
        return dataclasses.replace(result, left_out=left_out) if left_out else result

    def delete(
        self,
        dataset: str,
        ids: Any = None,
        *,
        filters: Filters = None,
        where: str | None = None,
    ) -> int:
        """Deletes rows by id, by a list of ids, or by a predicate.

        Args:
            dataset: its name.
            ids: one id, or several; an empty list deletes nothing.
            filters: rows for which all of these hold.
            where: the same as a SQL predicate.

        Returns:
            How many rows are gone.

        Raises:
            NotFound: the dataset, or one of the ids, is unknown; nothing is
                deleted then.

        Example:
            >>> client.delete("books", "b2")
            1
            >>> client.download_arrow("books").num_rows
            3
        """
        check_name(dataset)
        body = delete_body(dataset, ids, filters, where)
        if body.get("ids") == []:
            return 0
        told: dict[str, int] = self._backend.call("delete", {**body, "count": True})
        return told["rows"]


def _rows_a_message(batch_size: Any) -> int:
    told = plain(batch_size)
    if not isinstance(told, int) or isinstance(told, bool) or told < 1:
        wrong = f"batch_size is {shown(batch_size)}; give a whole number, at least 1"
        raise InvalidArgument("invalid_batch_size", wrong)
    return told
