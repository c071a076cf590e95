"""The Python client of Longbow, a vector database that speaks Apache Arrow.

    >>> import longbow
    >>> client = longbow.connect(client.uri, client.meta_uri)
    >>> result = client.insert("films", {"id": [1, 2], "vector": [[0.0, 1.0], [1.0, 0.0]]})
    >>> client.search("films", [0.1, 0.9], k=1)["id"].to_pylist()
    [1]

:func:`open` gives the same calls without a server: the engine in this process,
in memory or on a folder.

Only pyarrow is needed. numpy, pandas, polars and Dask are used where the data
given is theirs.
"""

from .aio import AsyncLongbowClient
from .changes import Change, ChangeStream
from .client import LongbowClient, connect
from .database import Database, open
from .errors import (
    Cancelled,
    DeadlineExceeded,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    LongbowError,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    Unauthenticated,
    Unavailable,
    Unimplemented,
)
from .results import (
    Backup,
    DatasetInfo,
    InsertResult,
    QueryInfo,
    Readiness,
    explain,
    query_info,
)
from .stream import BatchStream

__version__ = "0.1.0"

__all__ = [
    "AsyncLongbowClient",
    "Backup",
    "BatchStream",
    "Cancelled",
    "Change",
    "ChangeStream",
    "Database",
    "DatasetInfo",
    "DeadlineExceeded",
    "FailedPrecondition",
    "InsertResult",
    "Internal",
    "InvalidArgument",
    "LongbowClient",
    "LongbowError",
    "NotFound",
    "PermissionDenied",
    "QueryInfo",
    "Readiness",
    "ResourceExhausted",
    "Unauthenticated",
    "Unavailable",
    "Unimplemented",
    "connect",
    "explain",
    "open",
    "query_info",
]
