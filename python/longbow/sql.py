"""SQL: statements and parameters out, rows back.

To a server it speaks Flight SQL, of which it needs four small messages; they
are packed and read here, so that no compiler of protocols is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from .errors import Internal, InvalidArgument, translated
from .session import Session
from .stream import BatchStream

_TYPE = "type.googleapis.com/arrow.flight.protocol.sql."


def parameter_batch(parameters: Any) -> pa.RecordBatch | None:
    """Values of ``$1``, ``$2``, … as a batch of one row; None for none.

    Lists of numbers and numpy arrays become vectors of float32. A record batch
    or a table of one column for each parameter is taken as it is, with a row
    for each time that the statement is to be carried out.

    >>> parameter_batch([[0.5, 1], "x"]).schema.types
    [FixedSizeListType(fixed_size_list<item: float>[2]), DataType(string)]
    """
    if parameters is None:
        return None
    if isinstance(parameters, pa.Table):
        batches = parameters.combine_chunks().to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], parameters.schema)
    if isinstance(parameters, pa.RecordBatch):
        return parameters
    if isinstance(parameters, (str, bytes)) or not isinstance(parameters, Sequence):
        raise InvalidArgument(
            "bad_parameters", f"parameters are a list of values: [{parameters!r}]"
        )
    if not parameters:
        return None
    columns = [_column(value) for value in parameters]
    names = [str(number) for number in range(1, len(columns) + 1)]
    return pa.RecordBatch.from_arrays(columns, names)


def _column(value: Any) -> pa.Array:
    plain = value.tolist() if hasattr(value, "tolist") else value
    try:
        if isinstance(plain, (list, tuple)) and plain and _numbers(plain):
            return pa.array([plain], pa.list_(pa.float32(), len(plain)))
        return pa.array([plain])
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InvalidArgument("bad_parameters", f"{value!r} cannot be sent: {error}") from error


def _numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, (int, float)) for value in values)


def run(session: Session, statement: str, parameters: pa.RecordBatch | None) -> BatchStream:
    """Carries out a statement on a server."""
    if parameters is None:
        ticket = _packed("TicketStatementQuery", _field(1, statement.encode()))
        return _get(session, ticket)
    request = _packed("ActionCreatePreparedStatementRequest", _field(1, statement.encode()))
    answer = _action(session, "CreatePreparedStatement", request)
    # A result is packed like a request: its type, then itself.
    handle = _read(_read(answer, 2), 1)
    try:
        query = _packed("CommandPreparedStatementQuery", _field(1, handle))
        _bind(session, query, parameters)
        stream = _get(session, query)
        # The statement has begun; it needs its handle no more.
        with translated():
            stream.schema  # noqa: B018
        return stream
    finally:
        _action(
            session,
            "ClosePreparedStatement",
            _packed("ActionClosePreparedStatementRequest", _field(1, handle)),
        )


def _get(session: Session, ticket: bytes) -> BatchStream:
    with translated():
        options = session.options(unbounded=True)
        return BatchStream(session.meta.do_get(flight.Ticket(ticket), options))


def _action(session: Session, name: str, body: bytes) -> bytes:
    with translated():
        results = session.meta.do_action(flight.Action(name, body), session.options())
        return b"".join(result.body.to_pybytes() for result in results)


def _bind(session: Session, command: bytes, parameters: pa.RecordBatch) -> None:
    descriptor = flight.FlightDescriptor.for_command(command)
    with translated():
        writer, reader = session.meta.do_put(descriptor, parameters.schema, session.options())
        with writer:
            writer.write_batch(parameters)
            writer.done_writing()
            reader.read()


def _packed(name: str, message: bytes) -> bytes:
    return _field(1, (_TYPE + name).encode()) + _field(2, message)


def _field(number: int, value: bytes) -> bytes:
    """A field of bytes.

    >>> _field(1, b"ab")
    b'\\n\\x02ab'
    """
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    """A number in groups of seven bits, the lowest first.

    >>> list(_varint(300))
    [172, 2]
    """
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def _read(message: bytes, wanted: int) -> bytes:
    """A field of bytes of a message that has only such.

    >>> _read(_field(1, b"a") + _field(2, b"bc"), 2)
    b'bc'
    """
    for number, value in _fields(message):
        if number == wanted:
            return value
    raise Internal(
        "invalid_reply", f"an answer of Flight SQL has no field {wanted}: {message[:80]!r}"
    )


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(message):
        tag, at = _number(message, at)
        length, at = _number(message, at)
        yield tag >> 3, message[at : at + length]
        at += length


def _number(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(message):
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            break
    return value, at
