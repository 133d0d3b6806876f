"""Opens a broker's connections to others: the seam at which a simulated network comes in."""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Protocol

from ottla.base.errors import ErrorCode, OttlaError


class Dialer(Protocol):
    """Opens connections."""

    async def dial(
        self,
        host: str,
        port: int,
        protocol: Callable[[], asyncio.BaseProtocol],
        timeout_ms: int,
    ) -> None:
        """Connect what `protocol` makes to an address. Raises OttlaError(BROKER_NOT_AVAILABLE)."""
        ...


class LoopDialer:
    """Connects through the running loop: by TCP on a real one, or a simulation's network.

    A connection ends when what was sent is not acknowledged for `silence_ms_max`
    (TCP_USER_TIMEOUT, where the system has it); 0 leaves the time to the system. After a longer
    silence TCP would wait as long again before it tries to send once more, though the network is
    back; a new connection is there at once.
    """

    def __init__(self, silence_ms_max: int = 0) -> None:
        self._silence_ms_max = silence_ms_max

    async def dial(
        self,
        host: str,
        port: int,
        protocol: Callable[[], asyncio.BaseProtocol],
        timeout_ms: int,
    ) -> None:
        """See `Dialer`."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                transport, _ = await loop.create_connection(protocol, host, port)
        except TimeoutError:
            raise _unreachable(host, port, f"no answer within {timeout_ms} ms") from None
        except OSError as error:
            raise _unreachable(host, port, error.strerror or str(error)) from error
        end = transport.get_extra_info("socket")
        if end is not None and self._silence_ms_max and hasattr(socket, "TCP_USER_TIMEOUT"):
            # The connection may have ended already; its protocol learns that by itself.
            with contextlib.suppress(OSError):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, self._silence_ms_max)


def _unreachable(host: str, port: int, why: str) -> OttlaError:
    return OttlaError(
        ErrorCode.BROKER_NOT_AVAILABLE,
        f"cannot connect to {host}:{port}: {why}; check that the broker runs, and that its "
        "advertised.listeners name an address other brokers can reach",
    )
