"""The connections of a client: one to the data server, one to the meta server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow.flight as flight

from .errors import Internal, InvalidArgument, translated
from .unsendable import unsendable

DATA_PORT = 3000
META_PORT = 3001

# Both directions: what is too large is for the server's configured limit to
# say, in its own words, not for a default of the transport.
_UNLIMITED = [
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
]
_SCHEMES = {
    "grpc": "grpc+tcp",
    "grpc+tcp": "grpc+tcp",
    "grpcs": "grpc+tls",
    "grpc+tls": "grpc+tls",
}


def address(uri: str, default_port: int) -> tuple[str, str, int]:
    """Splits a URI into Arrow's scheme, the host and the port.

    >>> address("grpc://db.example", 3000)
    ('grpc+tcp', 'db.example', 3000)
    >>> address("grpcs://[::1]:4000", 3000)
    ('grpc+tls', '[::1]', 4000)
    """
    if not isinstance(uri, str):
        text = f"the address is {uri!r}, of type {type(uri).__name__}; give a text like "
        raise InvalidArgument("invalid_uri", f"{text}'grpc://127.0.0.1:{default_port}'")
    scheme, separator, rest = uri.partition("://")
    if not separator or scheme not in _SCHEMES:
        known = ", ".join(f"{name}://" for name in _SCHEMES)
        raise InvalidArgument("invalid_uri", f"{uri!r} must begin with one of {known}")
    rest = rest.rstrip("/")
    host, colon, port = rest.rpartition(":")
    if not colon or rest.endswith("]"):
        host, port = rest, str(default_port)
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise InvalidArgument(
            "invalid_uri", f"{uri!r} must be like grpc://127.0.0.1:{default_port}"
        )
    return _SCHEMES[scheme], host, int(port)


def addresses(uri: str, meta_uri: str | None) -> tuple[str, str]:
    """Arrow's addresses of both servers; meta is data's next port by default.

    >>> addresses("grpc://127.0.0.1:4000", None)
    ('grpc+tcp://127.0.0.1:4000', 'grpc+tcp://127.0.0.1:4001')
    """
    scheme, host, port = address(uri, DATA_PORT)
    if meta_uri is None:
        meta_scheme, meta_host, meta_port = scheme, host, port + 1
    else:
        meta_scheme, meta_host, meta_port = address(meta_uri, META_PORT)
    return f"{scheme}://{host}:{port}", f"{meta_scheme}://{meta_host}:{meta_port}"


class Session:
    """Two Flight clients, and the headers that every call carries."""

    def __init__(
        self,
        uri: str,
        meta_uri: str | None,
        api_key: str | None,
        headers: Mapping[str, str] | None,
        timeout: float | None,
        tls_root_certs: bytes | None,
    ) -> None:
        self.uri, self.meta_uri = addresses(uri, meta_uri)
        self._timeout = timeout
        # gRPC wants header names in lower case and drops the call otherwise.
        self._headers: list[tuple[bytes, bytes]] = [
            (name.lower().encode(), value.encode()) for name, value in (headers or {}).items()
        ]
        if api_key is not None:
            self._headers.append((b"authorization", b"Bearer " + api_key.encode()))
        extra: dict[str, Any] = {"generic_options": _UNLIMITED}
        if tls_root_certs is not None:
            extra["tls_root_certs"] = tls_root_certs
        with translated():
            self.data = flight.FlightClient(self.uri, **extra)
            self.meta = flight.FlightClient(self.meta_uri, **extra)

    def options(
        self, headers: Mapping[str, str] | None = None, *, unbounded: bool = False
    ) -> flight.FlightCallOptions:
        """Call options: the session's headers and ``headers`` on top.

        ``unbounded`` leaves out the timeout, for streams whose length the
        caller's data decides.
        """
        extra = [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()]
        timeout = None if unbounded else self._timeout
        return flight.FlightCallOptions(headers=self._headers + extra, timeout=timeout)

    def action(self, server: flight.FlightClient, name: str, body: Any = None) -> bytes:
        """Runs an action with a JSON body; its results' bytes, joined."""
        payload = b"" if body is None else encode(body)
        with translated():
            results = server.do_action(flight.Action(name, payload), self.options())
            return b"".join(result.body.to_pybytes() for result in results)

    def action_json(self, server: flight.FlightClient, name: str, body: Any = None) -> Any:
        """Runs an action whose result is JSON, and decodes it."""
        return decode(self.action(server, name, body), f"the result of {name}")

    def get(
        self, ticket: Mapping[str, Any], *, unbounded: bool = False
    ) -> flight.FlightStreamReader:
        """Opens a DoGet on the data server with a JSON ticket."""
        encoded = flight.Ticket(encode(ticket))
        with translated():
            return self.data.do_get(encoded, self.options(unbounded=unbounded))

    def close(self) -> None:
        """Closes both connections."""
        self.data.close()
        self.meta.close()


def encode(body: Any) -> bytes:
    """JSON for the server. JSON has no NaN, so a vector with one stops here."""
    try:
        return json.dumps(body, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise unsendable(body, error) from error


def decode(body: bytes, what: str) -> Any:
    """JSON from the server; anything else is the server's fault, said as such."""
    try:
        return json.loads(body)
    except ValueError as error:
        shown = body[:80].decode("utf-8", "replace")
        raise Internal("invalid_reply", f"{what} is not JSON: {shown!r}") from error
