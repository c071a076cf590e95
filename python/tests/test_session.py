"""Addresses, headers, and what is done with replies that make no sense."""

import pyarrow.flight as flight
import pytest
from double import Double, SeesHeaders

import longbow
from longbow.session import address, addresses

ADDRESSES = [
    ("grpc://127.0.0.1:3000", None, "grpc+tcp://127.0.0.1:3000", "grpc+tcp://127.0.0.1:3001"),
    ("grpc://db", None, "grpc+tcp://db:3000", "grpc+tcp://db:3001"),
    ("grpcs://db:443/", "grpc+tls://meta", "grpc+tls://db:443", "grpc+tls://meta:3001"),
    ("grpc+tcp://[::1]:9", "grpc://[::1]", "grpc+tcp://[::1]:9", "grpc+tcp://[::1]:3001"),
]


@pytest.mark.parametrize("uri, meta_uri, data, meta", ADDRESSES)
def test_addresses(uri, meta_uri, data, meta) -> None:
    assert addresses(uri, meta_uri) == (data, meta)


@pytest.mark.parametrize(
    "uri", ["127.0.0.1:3000", "http://x", "grpc://", "grpc://x:0", "grpc://x:y"]
)
def test_bad_addresses_are_shown(uri) -> None:
    with pytest.raises(longbow.InvalidArgument, match="invalid_uri") as caught:
        address(uri, 3000)
    assert repr(uri) in caught.value.message


@pytest.mark.parametrize("wrong", [None, 5, b"grpc://x", ["grpc://x"]])
def test_an_address_that_is_no_text_is_shown(wrong) -> None:
    for given in [(wrong,), ("grpc://127.0.0.1:1", 5 if wrong is None else wrong)]:
        with pytest.raises(longbow.InvalidArgument, match="give a text like") as caught:
            longbow.connect(*given)
        assert caught.value.code == "invalid_uri"
        assert repr(given[-1]) in caught.value.message


@pytest.mark.parametrize("timeout", [float("nan"), -1, "5", True])
def test_a_timeout_that_is_no_time_is_refused(timeout) -> None:
    with pytest.raises(longbow.InvalidArgument, match="timeout is") as caught:
        longbow.LongbowClient(timeout=timeout)
    assert caught.value.code == "bad_value"
    assert repr(timeout) in caught.value.message


class Listener(flight.FlightServerBase):
    def do_action(self, context, action):
        return iter([b"{}"])


def test_every_call_carries_the_key_and_the_headers() -> None:
    sees = SeesHeaders()
    with Listener("grpc+tcp://127.0.0.1:0", middleware={"sees": sees}) as server:
        uri = f"grpc://127.0.0.1:{server.port}"
        with longbow.connect(uri, uri, api_key="secret", headers={"X-Tenant": "blue"}) as client:
            assert "secret" not in repr(client)
    (seen,) = sees.seen
    assert seen["authorization"] == ["Bearer secret"]
    assert seen["x-tenant"] == ["blue"]


def test_a_reply_that_is_not_json_is_the_servers_fault() -> None:
    with Double() as server, longbow.LongbowClient(server.uri, server.uri) as client:
        server.replies["cluster-status"] = [b"<html>"]
        with pytest.raises(longbow.Internal, match="cluster-status is not JSON: '<html>'"):
            client.status()


def test_a_call_ends_at_its_timeout() -> None:
    class Slow(flight.FlightServerBase):
        def do_action(self, context, action):
            while not context.is_cancelled():
                pass
            return iter([])

    with Slow("grpc+tcp://127.0.0.1:0") as server:
        uri = f"grpc://127.0.0.1:{server.port}"
        with longbow.LongbowClient(uri, uri, timeout=0.1) as client:
            with pytest.raises(longbow.DeadlineExceeded):
                client.status()
