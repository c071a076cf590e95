"""pyarrow's exceptions become the client's, with the server's text and code."""

import pickle

import pyarrow as pa
import pyarrow.flight as flight
import pytest
from double import Double

import longbow
from longbow.errors import translate

TEXT = "dimension_mismatch: expected 3, got 4. Send 3"
# What pyarrow adds to a status that came over a stream, as seen on the wire.
CONTEXT = (
    f". gRPC client debug context: INVALID_ARGUMENT:{TEXT}. "
    "Client context: IOError: Server never sent a data message. Detail: Internal"
)
STATUSES = [
    (pa.ArrowInvalid, "Flight returned invalid argument error, with", longbow.InvalidArgument),
    (pa.ArrowInvalid, "gRPC returned out-of-range error, with", longbow.InvalidArgument),
    (pa.ArrowInvalid, "gRPC returned resource exhausted error, with", longbow.ResourceExhausted),
    (pa.ArrowInvalid, "gRPC returned precondition failed error, with", longbow.FailedPrecondition),
    (pa.ArrowKeyError, "Flight returned not found error, with", longbow.NotFound),
    (
        pa.ArrowException,
        "Unknown: Flight returned already exists error, with",
        longbow.FailedPrecondition,
    ),
    (
        pa.ArrowNotImplementedError,
        "Flight returned unimplemented error, with",
        longbow.Unimplemented,
    ),
    (
        flight.FlightUnavailableError,
        "Flight returned unavailable error, with",
        longbow.Unavailable,
    ),
    (
        flight.FlightUnauthenticatedError,
        "Flight returned unauthenticated error, with",
        longbow.Unauthenticated,
    ),
    (
        flight.FlightUnauthorizedError,
        "Flight returned unauthorized error, with",
        longbow.PermissionDenied,
    ),
    (flight.FlightTimedOutError, "Flight returned timeout error, with", longbow.DeadlineExceeded),
    (flight.FlightCancelledError, "Flight cancelled call, with", longbow.Cancelled),
    (flight.FlightInternalError, "Flight returned internal error, with", longbow.Internal),
    (flight.FlightInternalError, "gRPC returned aborted error, with", longbow.Internal),
    (flight.FlightInternalError, "gRPC returned data loss error, with", longbow.Internal),
    (flight.FlightServerError, "Flight RPC failed with", longbow.Internal),
]


@pytest.mark.parametrize("suffix", ["", CONTEXT], ids=["unary", "stream"])
@pytest.mark.parametrize("source, words, expected", STATUSES, ids=lambda v: str(v)[-40:])
def test_every_status_has_its_type_and_its_text(source, words, expected, suffix) -> None:
    error = translate(source(f"{words} message: {TEXT}{suffix}"))
    assert type(error) is expected
    assert error.code == "dimension_mismatch"
    assert error.message == "expected 3, got 4. Send 3"
    assert str(error) == TEXT


def test_a_text_without_a_code_gets_the_kinds_own() -> None:
    error = translate(
        flight.FlightUnavailableError(
            "Flight returned unavailable error, with message: failed to connect to all addresses"
        )
    )
    assert (error.code, error.message) == ("unavailable", "failed to connect to all addresses")


RAISED = [
    (pa.ArrowInvalid, longbow.InvalidArgument),
    (pa.ArrowKeyError, longbow.NotFound),
    (pa.ArrowNotImplementedError, longbow.Unimplemented),
    (flight.FlightUnavailableError, longbow.Unavailable),
    (flight.FlightUnauthenticatedError, longbow.Unauthenticated),
    (flight.FlightUnauthorizedError, longbow.PermissionDenied),
    (flight.FlightTimedOutError, longbow.DeadlineExceeded),
    (flight.FlightCancelledError, longbow.Cancelled),
    (flight.FlightInternalError, longbow.Internal),
]


@pytest.mark.parametrize("raised, expected", RAISED, ids=lambda kind: kind.__name__)
def test_over_a_real_connection(raised, expected) -> None:
    with Double() as server, longbow.LongbowClient(server.uri, server.uri) as client:
        server.error = raised(TEXT)
        with pytest.raises(longbow.LongbowError) as caught:
            client.status()
        assert type(caught.value) is expected
        assert str(caught.value) == TEXT
        with pytest.raises(longbow.LongbowError) as caught:
            client.insert("d", {"id": [1], "vector": [[1.0]]})
        assert type(caught.value) is expected
        # The server had acknowledged the row.
        written = "; the first 1 rows of this insert are written"
        assert str(caught.value).startswith(TEXT + written)


def test_nobody_there_is_unavailable() -> None:
    with pytest.raises(longbow.Unavailable, match="connect"):
        longbow.connect("grpc://127.0.0.1:1")


def test_errors_survive_pickling() -> None:
    error = pickle.loads(pickle.dumps(longbow.NotFound("a_code", "a message")))
    assert (type(error), error.code, error.message) == (longbow.NotFound, "a_code", "a message")
