"""The half of the client that finds and fetches rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from .answers import AnswerStream
from .backend import Asked, Backend
from .checks import check_name, row_id, shown, whole
from .errors import InvalidArgument, NotFound
from .requests import Filters, filter_list, plain, without_none
from .rerank import Rerank, check_rerank, reranked
from .sql import parameter_batch
from .stream import BatchStream
from .vectors import no_vectors


class Reads:
    """Searching, and downloading."""

    _backend: Backend

    def search(
        self,
        dataset: str,
        vector: Any = None,
        k: int = 10,
        *,
        column: str | None = None,
        filters: Filters = None,
        where: str | None = None,
        text_query: str | None = None,
        text_columns: Sequence[str] | None = None,
        alpha: float | None = None,
        fusion: str | None = None,
        beside: Sequence[Mapping[str, Any]] | None = None,
        ids: Sequence[int | str] | None = None,
        negative_ids: Sequence[int | str] | None = None,
        offset: int | None = None,
        cursor: str | None = None,
        group_by: str | None = None,
        group_size: int | None = None,
        mmr: float | None = None,
        rerank: Rerank | None = None,
        rerank_from: int | None = None,
        ef: int | None = None,
        nprobe: int | None = None,
        recall_target: float | None = None,
        exact: bool | None = None,
        max_distance: float | None = None,
        columns: Sequence[str] | None = None,
        include_vectors: bool | None = None,
        explain: bool | None = None,
        score_parts: bool | None = None,
        timeout_ms: int | None = None,
        budget_ms: int | None = None,
    ) -> pa.Table:
        """The ``k`` rows nearest to a vector, best first.

        Args:
            dataset: its name.
            vector: one vector, or several (2-D): the reply then begins with
                ``query_index``. None for a search by text alone.
            k: rows per query.
            column: the vector column to search, if there are several.
            filters: conditions that all hold, like ``("year", ">", 1990)``.
            where: a SQL predicate.
            text_query, text_columns: words to find, and the columns to look in;
                with a vector, a hybrid search.
            alpha: 1.0 is the vector alone, 0.0 the text alone, between both are
                fused; below 0 the length of the text decides.
            fusion: ``rrf`` or ``weighted``: how several searches become one.
            beside: other vector columns to search for the same answer, like
                ``{"column": "image", "vector": [...], "weight": 0.5}``.
            ids, negative_ids: in place of a vector: rows that the answer is to
                be like, and unlike. They are not in it.
            offset: rows, or groups, to leave out first.
            cursor: ``""`` for a first page; then what
                ``longbow.query_info(page).cursor`` says, as long as it does.
            group_by, group_size: ``k`` counts groups of equal values of this
                column, and each has up to so many rows (1).
            mmr: for answers unlike each other: from 0 to 1, the weight of
                nearness against difference.
            rerank: called with the table of the best ``rerank_from`` rows (four
                times ``k``); returns a score for each, and the best ``k`` by
                it are the answer. For a single query.
            recall_target: the share of the true neighbours that is to be found
                on average, above 0 and up to 1: the server chooses the effort,
                and :func:`longbow.explain` tells it. ``exact`` and ``ef`` go
                before it.
            ef, nprobe: the effort itself, one of them: candidates of a walk,
                or postings to read, where the index is ``spfresh``.
            exact: compare with every row.
            max_distance: leave out what is further. Where fewer than ``k``
                are as near, but many of those that an index was searched for,
                it is searched again, wider, unless ``ef`` or ``nprobe`` is
                given, or words or other columns are searched, too.
            explain: whether :func:`longbow.explain` is to say why it went so.
            columns, include_vectors: what to return beside id, score, distance.
            score_parts: whether to tell of each row what each search gave it:
                a column ``score_parts`` of structs, with a field for each
                search, named as its vector column, or ``text``. In it ``rank``
                (from 1), ``score`` as that search alone tells it, and
                ``contribution``, what that came to in the row's score; null
                where the search did not find the row.
            timeout_ms: after this long the search fails.
            budget_ms: after this long the search ends with what it has found;
                ``longbow.query_info(reply).partial_because`` then says so. Not
                with ``cursor``.

        Returns:
            A ``pyarrow.Table`` with ``id``, ``score`` (higher is better),
            ``distance`` and more as asked; :func:`longbow.explain` reads it.

        Example:
            >>> reply = client.search("books", [0.1, 0.2, 0.3], k=2, columns=["title"])
            >>> reply["title"].to_pylist()
            ['Dune', 'Emma']
        """
        check_name(dataset)
        # As in search_numpy, so that both refuse the same by the same words.
        k = k if type(k) is int else whole("k", k)
        ef = ef if ef is None or type(ef) is int else whole("ef", ef)
        options = {
            **{"k": k, "column": column, "filters": filter_list(filters), "where": where},
            "text_query": text_query,
            "text_columns": _names(text_columns),
            "alpha": alpha,
            "fusion": fusion,
            "beside": plain(beside),
            "ids": plain(ids),
            "negative_ids": plain(negative_ids),
            **{"offset": offset, "cursor": cursor, "group_by": group_by, "group_size": group_size},
            "mmr": mmr,
            "ef": ef,
            "nprobe": nprobe,
            "recall_target": recall_target,
            "exact": exact,
            "max_distance": max_distance,
            "columns": _names(columns),
            "include_vectors": include_vectors,
            "explain": explain,
            "score_parts": score_parts,
            "timeout_ms": timeout_ms,
            "budget_ms": budget_ms,
        }
        check_rerank(rerank, rerank_from, cursor)
        if rerank is None:
            return self._backend.search(dataset, vector, options)
        options["k"] = max(k, 4 * k if rerank_from is None else whole("rerank_from", rerank_from))
        return reranked(self._backend.search(dataset, vector, options), rerank, k)

    def search_numpy(
        self,
        dataset: str,
        vectors: Any,
        k: int = 10,
        *,
        column: str | None = None,
        ef: int | None = None,
        nprobe: int | None = None,
        recall_target: float | None = None,
        exact: bool | None = None,
        filters: Filters = None,
        where: str | None = None,
    ) -> tuple[Any, Any]:
        """:meth:`search` with the answer in two numpy arrays: the lean way, where
        ids and distances are all that is wanted.

        Args:
            dataset: its name.
            vectors: one vector, or several (2-D); float32 arrays of numpy's are
                read where they are.
            k: rows per query.
            column, ef, nprobe, recall_target, exact, filters, where: as in
                :meth:`search`.

        Returns:
            Ids (``int64`` or ``uint64``, or objects for text) and distances
            (``float32``), best first. For one vector both are of as many rows as
            were found; for several of the shape (queries, k), where a place
            without a row has the id -1 (the greatest ``uint64``, or None) at an
            infinite distance.

        Example:
            >>> ids, distances = client.search_numpy("books", [0.1, 0.2, 0.3], k=2)
            >>> ids.tolist(), distances.shape
            (['b1', 'b2'], (2,))
        """
        check_name(dataset)
        if vectors is None:
            raise no_vectors()
        # The usual ones are not looked at twice: that takes as long as some of the search.
        k = k if type(k) is int else whole("k", k)
        ef = ef if ef is None or type(ef) is int else whole("ef", ef)
        if filters is None and where is None and nprobe is None and recall_target is None:
            return self._backend.nearest(dataset, vectors, (k, ef, exact, column))
        asked = Asked(k, ef, exact, column, filters, where, nprobe, recall_target)
        return self._backend.nearest_where(dataset, vectors, asked)

    def search_by_id(self, dataset: str, id: int | str, k: int = 10) -> pa.Table:
        """The ``k`` rows nearest to a row of the dataset, that row among them.

        ``search(dataset, ids=[id])`` leaves that row out, and has distances,
        columns, filters, and rows to be unlike.

        Returns:
            A table with ``id`` and ``score``.

        Raises:
            NotFound: no such dataset or id.

        Example:
            >>> client.search_by_id("books", "b1", k=2).column_names
            ['id', 'score']
        """
        check_name(dataset)
        body = {"dataset": dataset, "id": row_id(id), "k": whole("k", k)}
        told = self._backend.call("VectorSearchByID", body)
        return pa.table({"id": told["ids"], "score": pa.array(told["scores"], pa.float32())})

    def search_many(
        self, dataset: str, vectors: Any, k: int = 10, *, ef: int | None = None
    ) -> pa.Table:
        """:meth:`knn_join`, gathered into one table.

        Example:
            >>> reply = client.search_many("books", [[0.1, 0.2, 0.3], [0.9, 0.8, 0.7]], k=1)
            >>> reply["query_index"].to_pylist(), reply["id"].to_pylist()
            ([0, 1], ['b1', 'b4'])
        """
        return self.knn_join(dataset, vectors, k, ef=ef).read_all()

    def knn_join(
        self, dataset: str, vectors: Any, k: int = 10, *, ef: int | None = None
    ) -> AnswerStream:
        """Searches for many vectors over one stream; answers come as they are found.

        Args:
            dataset: its name.
            vectors: 2-D, or an iterator of 2-D blocks that is read as the
                server asks for more, so that it need not fit in memory.
            k: rows per query.
            ef: as in :meth:`search`.

        Returns:
            A stream of record batches with ``query_index``, the position of
            the query in the whole of ``vectors``, ``id``, ``score`` and
            ``distance``. Its ``queries_done`` says how far it has come.

        Example:
            >>> for batch in client.knn_join("books", [[0.1, 0.2, 0.3]], k=2):
            ...     print(batch["id"].to_pylist())
            ['b1', 'b2']
        """
        check_name(dataset)
        if vectors is None:
            raise no_vectors()
        if not hasattr(vectors, "__iter__"):
            text = f"the vectors are {shown(vectors)}; give several, or an iterator of blocks"
            raise InvalidArgument("invalid_vector", text)
        effort = None if ef is None else whole("ef", ef)
        return self._backend.join(dataset, vectors, whole("k", k), effort)

    def download_stream(
        self,
        dataset: str,
        columns: Sequence[str] | None = None,
        *,
        limit: int | None = None,
        offset: int | None = None,
        filters: Filters = None,
        where: str | None = None,
    ) -> BatchStream:
        """The rows of a dataset as a stream of record batches.

        Args:
            dataset: its name.
            columns: which columns; all by default.
            limit: at most this many rows.
            offset: after leaving out this many.
            filters: only rows for which all of these hold.
            where: the same as a SQL predicate.

        Example:
            >>> with client.download_stream("books", ["id", "title"]) as stream:
            ...     stream.schema.names
            ['id', 'title']
        """
        check_name(dataset)
        ticket = {
            "name": dataset,
            "columns": _names(columns),
            "limit": limit,
            "offset": offset,
            "filters": filter_list(filters),
            "where": where,
        }
        return self._backend.rows(without_none(ticket))

    def download_arrow(
        self,
        dataset: str,
        columns: Sequence[str] | None = None,
        *,
        limit: int | None = None,
        offset: int | None = None,
        filters: Filters = None,
        where: str | None = None,
    ) -> pa.Table:
        """The rows of a dataset as one table; arguments as :meth:`download_stream`.

        Example:
            >>> client.download_arrow("books", filters=("year", ">", 1960)).num_rows
            2
        """
        stream = self.download_stream(
            dataset, columns, limit=limit, offset=offset, filters=filters, where=where
        )
        return stream.read_all()

    def sql(self, statement: str, parameters: Any = None) -> pa.Table:
        """What a SQL statement answers, as one table.

        Args:
            statement: one statement; datasets are its tables.
            parameters: values for its ``$1``, ``$2``, …: numbers, texts, times,
                and vectors as lists or numpy arrays. A record batch or table
                carries a write out once for each of its rows.

        Returns:
            The rows of a query; of an INSERT or DELETE, one row with their
            ``count``.

        Raises:
            InvalidArgument: ``bad_sql``, ``unknown_column`` and others: what is
                wrong with the statement.
            NotFound: ``unknown_table``.
            ResourceExhausted: ``sql_memory``: it needs more than the limit.

        Example:
            >>> nearest = "SELECT title FROM books WHERE year > $2 "
            >>> nearest += "ORDER BY distance(vector, $1) LIMIT 2"
            >>> client.sql(nearest, [[0.1, 0.2, 0.3], 1900])["title"].to_pylist()
            ['Dune', 'Ulysses']
        """
        return self.sql_stream(statement, parameters).read_all()

    def sql_stream(self, statement: str, parameters: Any = None) -> BatchStream:
        """:meth:`sql`, as a stream of record batches.

        Example:
            >>> with client.sql_stream("SELECT year FROM books") as stream:
            ...     sum(batch.num_rows for batch in stream)
            4
        """
        if not isinstance(statement, str):
            raise InvalidArgument("bad_sql", f"the statement is {shown(statement)}; give a text")
        return self._backend.sql(statement, parameter_batch(parameters))

    def get(self, dataset: str, id: int | str) -> dict[str, Any]:
        """One row, by its id.

        Raises:
            NotFound: no such dataset or id.

        Example:
            >>> client.get("books", "b1")["title"]
            'Dune'
        """
        rows = self.download_arrow(dataset, filters=("id", "=", row_id(id))).to_pylist()
        if not rows:
            raise NotFound("id_not_found", f"no row {id!r} in dataset {dataset!r}")
        row: dict[str, Any] = rows[0]
        return row


def _names(columns: Sequence[str] | None) -> list[str] | None:
    # A text is a sequence of its letters; nobody means that.
    if isinstance(columns, str):
        raise InvalidArgument("invalid_columns", f"columns is a list of names: [{columns!r}]")
    if columns is not None and not isinstance(columns, Iterable):
        raise InvalidArgument(
            "invalid_columns", f"columns is {shown(columns)}; give a list of names"
        )
    return None if columns is None else list(columns)
