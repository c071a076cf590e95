"""The engine in this process: no server, no network, the same calls."""

from __future__ import annotations

import os
from typing import Any

from .admin import Admin
from .checks import shown
from .closing import Closing, close_at_exit
from .errors import InvalidArgument, Unavailable
from .fit import Known
from .local import Local
from .reads import Reads
from .writes import Writes


class Database(Writes, Reads, Admin, Closing):
    """Datasets in memory or in a folder, made by :func:`longbow.open`.

    Its methods are those of :class:`longbow.LongbowClient` and give the same
    answers, but for what only a server has (``status`` and ``changes``). Any
    number of threads may share one; Python's lock is free while it works.
    """

    def __init__(self, path: str | None, settings: list[tuple[str, str]]) -> None:
        try:
            from ._engine import Engine
        except ImportError as error:
            raise Unavailable(
                "no_engine",
                f"this installation has no engine for this Python ({error}): it needs Python "
                "3.11 or later, and `make build` in a checkout; a server needs neither",
            ) from error
        self._path = path
        self._engine = Engine(path, settings)
        self._backend = Local(self._engine)
        self._known = Known(self._backend.schema)
        close_at_exit(self)

    def close(self) -> None:
        """Writes and syncs what is left, the indexes too, and lets go of the folder.

        What was acknowledged needs no close to be kept; the indexes do, or are
        built anew by whoever opens the folder next.
        """
        self._engine.close()

    def __repr__(self) -> str:
        return f"longbow.open({self._path!r})"


def open(path: str | os.PathLike[str] | None = None, **settings: Any) -> Database:
    """Opens the engine in this process.

    Args:
        path: a data folder, made if it is not there; a server's folder is one,
            while the server is stopped. None: in memory, gone with the process.
        settings: those of the server that an engine has, under the same names,
            like ``memory_limit="4GiB"`` or ``hnsw_ef_search=100``.

    Raises:
        FailedPrecondition: ``data_folder_locked``: another process has it, or another database;
            ``data_folder_refused``: it cannot be made, or is no folder; ``backup_unfinished``: by
            its name it is a backup that never was whole.
        InvalidArgument: an unknown setting, or a wrong value.

    Example:
        >>> with longbow.open() as database:
        ...     result = database.insert("films", {"id": [1, 2], "vector": [[0, 1], [1, 0]]})
        ...     ids, distances = database.search_numpy("films", [0.1, 0.9], k=1)
        >>> ids.tolist()
        [1]
    """
    folder = os.fsdecode(path) if isinstance(path, (str, os.PathLike)) else None
    # As of a server's --data-path.
    is_none = folder is None or not folder.strip() or "\0" in folder
    if path is not None and is_none:
        text = f"the path is {shown(path)}; give a text or a Path, or nothing for memory"
        raise InvalidArgument("bad_path", text)
    given = [(name, _text(value)) for name, value in settings.items()]
    return Database(folder, given)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
