"""What no client sends: a relay that changes bytes on their way, or ends the connection."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Any

from wire import Wire

#: Takes the bytes of one client so far unsent and gives those to send on; None ends the connection.
Change = Callable[[bytes], "bytes | None"]


class Proxy:
    """Relays connections to a server through ``change``; a context manager."""

    def __init__(self, server: str, change: Change) -> None:
        host, port = server.rsplit(":", 1)
        self._server, self._change = (host, int(port)), change
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Wire:
        """A client of the data server by way of the relay."""
        port = self._listener.getsockname()[1]
        self._wire = Wire(f"127.0.0.1:{port}", f"127.0.0.1:{port}")
        return self._wire

    def __exit__(self, *_: Any) -> None:
        self._wire.data.close()
        self._wire.meta.close()
        for end in self._open:
            _end(end)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # It was closed: the test is over.
            server = socket.create_connection(self._server)
            self._open += [client, server]
            for source, sink, change in (client, server, self._change), (server, client, bytes):
                threading.Thread(target=_relay, args=(source, sink, change), daemon=True).start()


def _relay(source: socket.socket, sink: socket.socket, change: Change) -> None:
    try:
        while received := source.recv(1 << 20):
            changed = change(received)
            if changed is None:
                break
            sink.sendall(changed)
    except OSError:
        pass  # The other side ended it.
    _end(source)
    _end(sink)


def _end(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # It is not connected any more, or never was.
    end.close()


def swapped(old: bytes, new: bytes) -> Change:
    """Puts ``new`` in the place of ``old``, which is of the same length."""
    assert len(old) == len(new)
    return lambda received: received.replace(old, new)


def cut_after(mark: bytes, count: int) -> Change:
    """Ends the connection ``count`` bytes behind the first ``mark``."""
    left: list[int] = []

    def change(received: bytes) -> bytes | None:
        if not left and mark in received:
            left.append(received.index(mark) + len(mark) + count)
        if not left:
            return received
        if left[0] <= 0:
            return None
        passed = received[: left[0]]
        left[0] -= len(passed)
        return passed

    return change
