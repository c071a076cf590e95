"""Datasets, namespaces and the server itself."""

from __future__ import annotations

import time
from typing import Callable

from .backend import Backend
from .checks import check_name, check_seconds
from .errors import DeadlineExceeded, NotFound
from .results import Backup, DatasetInfo, Readiness

# A small index is ready in milliseconds, a large one in minutes: the pauses
# between questions grow from the first to the second.
_FIRST_PAUSE = 0.005
_LAST_PAUSE = 0.5


class Admin:
    """Looking after datasets."""

    _backend: Backend

    def list_datasets(self) -> list[DatasetInfo]:
        """Every dataset, with schema, rows and bytes.

        Example:
            >>> "books" in [dataset.name for dataset in client.list_datasets()]
            True
        """
        return self._backend.datasets()

    def get_info(self, dataset: str) -> DatasetInfo:
        """Schema, rows and bytes of one dataset.

        Raises:
            NotFound: no such dataset.

        Example:
            >>> client.get_info("books").rows
            4
        """
        check_name(dataset)
        return self._backend.dataset(dataset)

    def delete_dataset(self, dataset: str) -> None:
        """Deletes a dataset with all its rows.

        Example:
            >>> client.delete_dataset("books")
            >>> [d.name for d in client.list_datasets() if d.name == "books"]
            []
        """
        check_name(dataset)
        self._backend.call("delete-dataset", {"dataset": dataset})

    def create_namespace(self, name: str) -> None:
        """Creates a namespace.

        Example:
            >>> client.create_namespace("library")
            >>> "library" in client.list_namespaces()
            True
            >>> client.delete_namespace("library")
        """
        check_name(name, "namespace")
        self._backend.call("CreateNamespace", {"name": name})

    def delete_namespace(self, name: str) -> None:
        """Deletes a namespace; see :meth:`create_namespace`."""
        check_name(name, "namespace")
        self._backend.call("DeleteNamespace", {"name": name})

    def list_namespaces(self) -> list[str]:
        """The names of all namespaces."""
        told = self._backend.call("ListNamespaces")
        return list(told["namespaces"])

    def snapshot(self, dataset: str | None = None) -> str:
        """Writes a snapshot of one dataset or of all; returns its id.

        Example:
            >>> isinstance(client.snapshot(), str)
            True
        """
        told = self._backend.call("ForceSnapshot", _of(dataset))
        return str(told["snapshot"])

    def backup(self, name: str) -> Backup:
        """Copies all datasets into a new folder of that name, while reads and writes go on.

        The folder is made where the setting ``backup_path`` says, on the machine
        of the server. A server started on a copy of it has what was acknowledged
        before the backup began; so has :func:`longbow.open`.

        Args:
            name: letters, digits, ``-``, ``_`` and ``.``

        Raises:
            FailedPrecondition: ``backup_exists``: there is one of that name;
                ``backup_refused``: the folder cannot be written.
            ResourceExhausted: ``disk_space``: it would not fit.
            Unavailable: ``backup_under_way``: another one is being made.
            DeadlineExceeded: the client's ``timeout`` has passed; the backup goes on.

        Example:
            >>> client.backup("monday").datasets > 0
            True
        """
        told = self._backend.call("Backup", {"name": name})
        return Backup(
            path=told["path"],
            offset=told["offset"],
            datasets=told["datasets"],
            rows=told["rows"],
            files=told["files"],
            bytes=told["bytes"],
        )

    def ready(self, dataset: str | None = None) -> Readiness:
        """Whether every row is in the index (of one dataset, or of all).

        Rows are found before that too, by scanning; the index makes it fast.

        Example:
            >>> client.ready("no_such_dataset").status
            'NOT_FOUND'
        """
        told = self._backend.call("check_readiness", _of(dataset))
        return Readiness(
            status=told["status"],
            reason=told.get("reason"),
            rows=told.get("rows"),
            index_len=told.get("index_len"),
            indexes=told.get("indexes"),
        )

    def wait_until_indexed(
        self,
        dataset: str,
        timeout: float = 60.0,
        *,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> Readiness:
        """Asks :meth:`ready` until it is.

        Args:
            dataset: its name.
            timeout: seconds after which to give up.
            pause: what waits between two questions.
            clock: what tells the time.

        Raises:
            NotFound: no such dataset.
            DeadlineExceeded: still not indexed after ``timeout``.

        Example:
            >>> client.wait_until_indexed("books").status
            'READY'
        """
        check_name(dataset)
        check_seconds("timeout", timeout)
        end, wait = clock() + timeout, _FIRST_PAUSE
        while True:
            state = self.ready(dataset)
            if state:
                return state
            if state.status == "NOT_FOUND":
                raise NotFound("dataset_not_found", f"no dataset {dataset!r}")
            left = end - clock()
            if left <= 0:
                raise DeadlineExceeded(
                    "not_indexed",
                    f"dataset {dataset!r} is {state.status} after {timeout} s: "
                    f"{state.index_len} of {state.rows} rows indexed",
                )
            pause(min(wait, left))
            wait = min(wait * 2, _LAST_PAUSE)


def _of(dataset: str | None) -> dict[str, str] | None:
    """The body of an action on one dataset; None for all."""
    if dataset is None:
        return None
    check_name(dataset)
    return {"dataset": dataset}
