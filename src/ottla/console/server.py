"""Serves the console over HTTP, in this process, until a signal stops it."""

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from ipaddress import ip_address

import uvicorn

from ottla.base.errors import ErrorCode, OttlaError, WrongWords
from ottla.console.app import ConsoleOptions, make_app

# How long open pages, such as live records, may delay the end.
_STOP_S = 2
_BACKLOG = 256
_THIS_MACHINE = ("127.0.0.1", "localhost", "::1")


def parse_listen(text: str) -> tuple[str, int]:
    """Parse `127.0.0.1:8090` or `[::1]:8090`. Raises WrongWords."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535 or not host.strip("[]"):
        raise WrongWords(f"{text!r} is no address to listen on; write it as 127.0.0.1:8090")
    return host.strip("[]"), int(port)


def is_local(host: str) -> bool:
    """Whether only programs of this machine can connect to an address."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def hosts_for(host: str, *, has_login: bool) -> tuple[str, ...]:
    """Return the names by which browsers may call the console; empty for any.

    Without a log-in, a page of the internet whose name leads to this machine could otherwise read
    the console through a browser here.
    """
    return () if has_login or not is_local(host) else tuple(dict.fromkeys((*_THIS_MACHINE, host)))


def serve(
    options: ConsoleOptions,
    host: str,
    port: int,
    certificate: tuple[str, str] | None,
    on_ready: Callable[[str], None],
) -> None:
    """Serve until SIGINT or SIGTERM. `certificate` and key, in PEM files, are for HTTPS.

    `on_ready` gets the console's address once it accepts connections. Raises OttlaError if it
    cannot listen there.
    """
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    listener = _listener(host, port)
    shown_host = f"[{host}]" if ":" in host else host
    scheme = "http" if certificate is None else "https"
    config = uvicorn.Config(
        make_app(options),
        log_config=None,
        access_log=False,
        server_header=False,
        ssl_certfile=certificate[0] if certificate else None,
        ssl_keyfile=certificate[1] if certificate else None,
        timeout_graceful_shutdown=_STOP_S,
        ws="none",
    )
    try:
        config.load()
    except OSError as error:
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"the certificate or key of the console cannot be used: {error.strerror or error}",
        ) from None

    async def run() -> None:
        on_ready(f"{scheme}://{shown_host}:{listener.getsockname()[1]}")
        await uvicorn.Server(config).serve(sockets=[listener])

    asyncio.run(run())


def _listener(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(_BACKLOG)
    except OSError as error:
        raise OttlaError(
            ErrorCode.NETWORK_EXCEPTION,
            f"cannot listen on {host}:{port}: {error.strerror or error}; choose another --listen",
        ) from None
    return listener
