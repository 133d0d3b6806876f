"""Opens a broker's connections to other brokers. Simulations replace the dialer by their own."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from typing import Protocol

from ottla.base.errors import ErrorCode, OttlaError
from ottla.network.tls.source import TlsSource
from ottla.network.tls.trouble import of_server


class Dialer(Protocol):
    """Opens connections."""

    async def dial(
        self,
        host: str,
        port: int,
        protocol: Callable[[], asyncio.BaseProtocol],
        timeout_ms: int,
        *,
        knocks: bool = False,
    ) -> None:
        """Open a connection to an address, with the protocol object that `protocol` creates.

        `knocks` only checks, without TLS, that the host accepts connections. Raises
        OttlaError(BROKER_NOT_AVAILABLE).
        """
        ...


class LoopDialer:
    """Connects through the running event loop: by TCP, or over a simulated network.

    A connection ends when sent data is not acknowledged for `silence_ms_max` (TCP_USER_TIMEOUT, if
    the system has it); 0 leaves this timeout to the system. After a long network failure, TCP waits
    about as long again before its next attempt to send. A new connection works as soon as the
    network has recovered.
    """

    def __init__(self, silence_ms_max: int = 0, tls: TlsSource | None = None) -> None:
        self._silence_ms_max = silence_ms_max
        # None if the brokers' listener is plaintext.
        self._tls = tls

    async def dial(
        self,
        host: str,
        port: int,
        protocol: Callable[[], asyncio.BaseProtocol],
        timeout_ms: int,
        *,
        knocks: bool = False,
    ) -> None:
        """See `Dialer`."""
        loop = asyncio.get_running_loop()
        context = None if knocks or self._tls is None else self._tls.newest(loop.time())
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                transport, _ = await loop.create_connection(
                    protocol,
                    host,
                    port,
                    ssl=context,
                    server_hostname=None if context is None else host,
                )
        except TimeoutError:
            raise _unreachable(host, port, f"no answer within {timeout_ms} ms") from None
        except ssl.SSLError as error:
            raise _unreachable(host, port, of_server(error, host)) from error
        except OSError as error:
            raise _unreachable(host, port, error.strerror or str(error)) from error
        end = transport.get_extra_info("socket")
        if end is not None and self._silence_ms_max and hasattr(socket, "TCP_USER_TIMEOUT"):
            # The connection may have ended already; its protocol then notices that by itself.
            with contextlib.suppress(OSError):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, self._silence_ms_max)


def _unreachable(host: str, port: int, why: str) -> OttlaError:
    return OttlaError(
        ErrorCode.BROKER_NOT_AVAILABLE,
        f"cannot connect to {host}:{port}: {why}; check that the broker runs, and that its "
        "advertised.listeners name an address other brokers can reach",
    )
