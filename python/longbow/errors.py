"""The exceptions of the client, one per gRPC status that the server uses.

Every exception carries ``code``, a stable snake_case word that programs may
compare with, and ``message``, a sentence for people that names the value that
was wrong. The client raises the same types for what it refuses itself.

    >>> try:
    ...     client.get_info("no_such_dataset")
    ... except longbow.NotFound as error:
    ...     print(type(error).__name__)
    NotFound
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.flight as flight


class LongbowError(Exception):
    """Anything that went wrong in a call; the base of all the types below."""

    #: What ``code`` is when the server's text names none.
    default_code = "unknown"

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    def after(self, rows: int, *, counted: bool, exact: bool = True) -> None:
        """Says that so many rows of the insert were written before, or more if that is not
        ``exact``; ``counted`` if rows that the text names are counted from there."""
        if rows:
            least = "" if exact else "at least "
            behind = (
                ", and rows are counted here from the batch that was refused" if counted else ""
            )
            self.message += f"; {least}the first {rows} rows of this insert are written{behind}"
            self.args = (self.code, self.message)


class NotFound(LongbowError):
    """The dataset, namespace or id does not exist."""

    default_code = "not_found"


class InvalidArgument(LongbowError):
    """The request can't be right in any state of the server: change it."""

    default_code = "invalid_argument"


class ResourceExhausted(LongbowError):
    """A memory or rate limit was reached: retry later, or send less."""

    default_code = "resource_exhausted"


class Unavailable(LongbowError):
    """The server can't be reached, or is starting: retry."""

    default_code = "unavailable"


class FailedPrecondition(LongbowError):
    """The request is sound, the state of the server does not allow it."""

    default_code = "failed_precondition"


class Unauthenticated(LongbowError):
    """No key, or one the server does not know."""

    default_code = "unauthenticated"


class PermissionDenied(LongbowError):
    """The key is known and does not allow this call."""

    default_code = "permission_denied"


class Unimplemented(LongbowError):
    """The server does not offer this."""

    default_code = "unimplemented"


class DeadlineExceeded(LongbowError):
    """The time given to the call was over before the answer."""

    default_code = "deadline_exceeded"


class Cancelled(LongbowError):
    """The call was cancelled, by this side or the other."""

    default_code = "cancelled"


class Internal(LongbowError):
    """A fault of the server's own, or an answer that can't be understood."""

    default_code = "internal"


# Arrow folds several gRPC statuses into one exception type (INVALID_ARGUMENT,
# RESOURCE_EXHAUSTED and FAILED_PRECONDITION all arrive as ArrowInvalid); the
# words before the server's text are what still tells them apart.
_BY_WORDS: tuple[tuple[str, type[LongbowError]], ...] = (
    ("resource exhausted", ResourceExhausted),
    ("precondition failed", FailedPrecondition),
    ("already exists", FailedPrecondition),
    ("out-of-range", InvalidArgument),
    ("invalid argument", InvalidArgument),
    ("not found", NotFound),
)
_BY_TYPE: tuple[tuple[type, type[LongbowError]], ...] = (
    (flight.FlightUnavailableError, Unavailable),
    (flight.FlightUnauthenticatedError, Unauthenticated),
    (flight.FlightUnauthorizedError, PermissionDenied),
    (flight.FlightTimedOutError, DeadlineExceeded),
    (flight.FlightCancelledError, Cancelled),
    (pa.ArrowKeyError, NotFound),
    (pa.ArrowNotImplementedError, Unimplemented),
    (pa.ArrowInvalid, InvalidArgument),
    (pa.ArrowTypeError, InvalidArgument),
)
_PREFIX = re.compile(r"^(?:Unknown: )?((?:Flight|gRPC) [a-zA-Z -]+?),? with message: ", re.S)
_CONTEXT = re.compile(r"\. gRPC client debug context: .*$", re.S)
# What Arrow's own servers (not Longbow's) add to the text.
_DETAIL = re.compile(
    r"\. Detail: Python exception: .*$"
    r"|\. Detail: (?:Internal|TimedOut|Cancelled|Unauthenticated|Unauthorized|Unavailable|Failed)$",
    re.S,
)
_CODE = re.compile(r"^([a-z][a-z0-9_]*): (.*)$", re.S)


def translate(error: BaseException) -> LongbowError:
    """The typed exception for one of pyarrow's, with the server's own text.

    >>> translate(pa.ArrowInvalid(
    ...     "gRPC returned resource exhausted error, with message: "
    ...     "memory_limit: 9 of 8 GiB"))
    ResourceExhausted('memory_limit', '9 of 8 GiB')
    """
    if isinstance(error, LongbowError):
        return error
    text = error.args[0] if error.args and isinstance(error.args[0], str) else str(error)
    prefix = _PREFIX.match(text)
    words = prefix.group(1) if prefix else ""
    text = _CONTEXT.sub("", text[prefix.end() :] if prefix else text)
    text = _DETAIL.sub("", text)
    kind = _kind(error, words)
    code = _CODE.match(text)
    if code:
        return kind(code.group(1), code.group(2))
    return kind(kind.default_code, text)


def _kind(error: BaseException, words: str) -> type[LongbowError]:
    for needle, kind in _BY_WORDS:
        if needle in words:
            return kind
    for source, kind in _BY_TYPE:
        if isinstance(error, source):
            return kind
    return Internal


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Within this block pyarrow's exceptions leave as the types above."""
    try:
        yield
    except pa.ArrowException as error:
        raise translate(error) from error
