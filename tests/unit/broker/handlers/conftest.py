"""No test of this folder opens a socket: the attempt fails it, whatever the code does about it."""

import asyncio
import socket
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest

# The event loop's own pair of sockets is neither bound nor connected.
_OPENING = (
    (socket.socket, ("bind", "connect", "connect_ex", "listen")),
    (
        asyncio.BaseEventLoop,
        ("create_connection", "create_datagram_endpoint", "create_server"),
    ),
    (asyncio.SelectorEventLoop, ("create_unix_connection", "create_unix_server")),
)


@pytest.fixture(autouse=True)
def opened_sockets(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The attempts to open a socket, each of which was refused. The test fails if there are any."""
    attempts: list[str] = []

    def refusing(name: str) -> Any:
        def refuse(*_arguments: object, **_named: object) -> NoReturn:
            attempts.append(name)
            raise AssertionError(f"{name}: the tests of handlers open no socket")

        return refuse

    for kind, names in _OPENING:
        for name in names:
            monkeypatch.setattr(kind, name, refusing(name))
    yield attempts
    assert attempts == [], "the test tried to open a socket"
