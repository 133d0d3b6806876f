"""The two ends of a simulated TCP connection, as asyncio's transports.

Written bytes wait in the sender's buffer until the receiver's window has room, are sent, and wait
at the receiver until its process reads them. So a process that does not read blocks its peer's
writes, and packets for a dead process are answered by a reset.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from ottla.testing.simulation.network.link import Link, Mark, Outbox, Packet
from ottla.testing.simulation.virtual.loop import VirtualLoop
from ottla.testing.simulation.virtual.process import Process

_HIGH_BYTES = 64 << 10


class Carrier(Protocol):
    """The methods of the network that an endpoint uses; `network.Network` has them."""

    loop: VirtualLoop
    obeys_late: bool

    def forget(self, endpoint: "TransportEndpoint") -> None:
        """Remove an endpoint that is closed."""

    def is_up(self, host: str) -> bool:
        """Whether the host has power."""

    def fragment(self, size: int) -> int:
        """Return how many of `size` available bytes the next receive returns."""


class TransportEndpoint(asyncio.Transport):
    """One end of a connection. `peer` is the other end, and `link` leads to it."""

    def __init__(
        self,
        network: Carrier,
        process: Process,
        link: Link,
        address: tuple[str, int],
        peer_address: tuple[str, int],
    ) -> None:
        super().__init__(extra={"sockname": address, "peername": peer_address})
        self._network = network
        self._loop = network.loop
        self.process = process
        self._outbox = Outbox(link, self._deliver)
        self.peer: TransportEndpoint
        self._protocol: asyncio.BaseProtocol | None = None
        # The state of sending.
        self._low_bytes, self._high_bytes = _HIGH_BYTES // 4, _HIGH_BYTES
        self._writing_paused = False
        # The state of receiving.
        self._inbox: deque[bytes] = deque()
        self._inbox_mark: Mark | None = None
        self._reading_paused = False
        self._read_scheduled = False
        self._closing = False
        self.is_lost = False

    # -- asyncio's interface

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        assert self._protocol is not None
        return self._protocol

    def is_closing(self) -> bool:
        return self._closing

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._closing or self.is_lost or not data:
            return
        self._outbox.put(bytes(data))
        if self._outbox.unsent_bytes > self._high_bytes and not self._writing_paused:
            self._writing_paused = True
            self.get_protocol().pause_writing()

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self.write(b"".join(list_of_data))

    def can_write_eof(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return self._outbox.unsent_bytes

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high_bytes = _HIGH_BYTES if high is None else high
        self._low_bytes = self._high_bytes // 4 if low is None else low

    def pause_reading(self) -> None:
        self._reading_paused = True

    def resume_reading(self) -> None:
        self._reading_paused = False
        self._schedule_read()

    def is_reading(self) -> bool:
        return not self._reading_paused and not self._closing

    def close(self) -> None:
        """Send the written bytes, then close in order."""
        if not self._closing:
            self._closing = True
            if self._outbox.is_empty:
                self._finish()

    def abort(self) -> None:
        """Discard the bytes that are not sent yet, and reset the connection."""
        if not self.is_lost:
            self._closing = True
            self._outbox.forget()
            self._outbox.post(Mark.FINISH if self._network.obeys_late else Mark.RESET)
            self._lose(None)

    # -- called by the network

    def open(self, factory: Callable[[], asyncio.BaseProtocol]) -> asyncio.BaseProtocol:
        """Create the protocol; called in the process that owns this end."""
        self._protocol = factory()
        self._protocol.connection_made(self)
        self._schedule_read()
        return self._protocol

    def die(self) -> None:
        """Close after the process was killed: its system sends what the window allows, then FIN."""
        if not self.is_lost:
            self.is_lost = self._closing = True
            self._outbox.forget()
            self._outbox.post(Mark.RESET if self._inbox else Mark.FINISH)
            self._network.forget(self)

    def vanish(self) -> None:
        """Close after the host lost its power; the peer is not notified."""
        self.is_lost = self._closing = True
        self._outbox.forget()
        self._network.forget(self)

    def reset(self) -> None:
        """Close because a host between both ends reset the connection; notify this end."""
        if not self.is_lost:
            self._closing = True
            self._outbox.forget()
            self._lose(ConnectionResetError("connection reset by peer"))

    @property
    def is_stalled(self) -> bool:
        return self._outbox.is_stalled

    def stall(self) -> None:
        """Deliver no more packets to the other end, until `release`."""
        self._outbox.is_stalled = True

    def release(self) -> None:
        """End the stall, and deliver the packets that arrived during it."""
        self._outbox.release()

    # -- sending

    def _finish(self) -> None:
        self._outbox.post(Mark.FINISH)
        self._lose(None)

    def _deliver(self, packet: Packet) -> None:
        """Pass a packet to the other end, on its host."""
        if isinstance(packet, bytes):
            self._loop.note(packet)
        self.peer._receive(packet)

    def _on_read(self, size: int) -> None:
        """Note that the other end has read, so that its window has room."""
        self._outbox.on_read(size, goes_on=not self.is_lost)
        if self.is_lost:
            return
        if self._writing_paused and self._outbox.unsent_bytes <= self._low_bytes:
            self._writing_paused = False
            self._loop.call_soon(self._resume_writing, context=self.process.context)
        if self._closing and self._outbox.is_empty:
            self._finish()

    def _resume_writing(self) -> None:
        if not self.is_lost:
            self.get_protocol().resume_writing()

    # -- receiving

    def _receive(self, packet: Packet) -> None:
        if self.is_lost:
            # This end is closed, or was never opened: answer with a reset.
            if isinstance(packet, bytes) and self._network.is_up(self.process.host):
                self._outbox.post(Mark.RESET)
            return
        if packet is Mark.RESET:
            self._inbox.clear()
        if isinstance(packet, Mark):
            self._inbox_mark = packet
        else:
            self._inbox.append(packet)
        self._schedule_read()

    def _schedule_read(self) -> None:
        ready = self._inbox or self._inbox_mark is not None
        if ready and not self._read_scheduled and not self.is_lost and self._protocol is not None:
            self._read_scheduled = True
            self._loop.call_soon(self._read, context=self.process.context)

    def _read(self) -> None:
        """Receive once, as an event loop does in each turn."""
        self._read_scheduled = False
        if self.is_lost or (self._reading_paused and self._inbox_mark is not Mark.RESET):
            return
        if self._inbox and not self._closing:
            self._read_some()
        elif self._inbox_mark is Mark.RESET:
            self.reset()
            return
        elif self._inbox_mark is Mark.FINISH:
            self._on_finish()
            return
        if not self._reading_paused and not self._closing:
            self._schedule_read()

    def _read_some(self) -> None:
        packet = self._inbox.popleft()
        limit = self._network.fragment(len(packet))
        protocol = self.get_protocol()
        if isinstance(protocol, asyncio.BufferedProtocol):
            buffer = memoryview(protocol.get_buffer(-1))
            size = min(limit, len(buffer))
            buffer[:size] = packet[:size]
        else:
            size = limit
        if size < len(packet):
            self._inbox.appendleft(packet[size:])
        self.peer._on_window(size)
        if isinstance(protocol, asyncio.BufferedProtocol):
            protocol.buffer_updated(size)
        else:
            assert isinstance(protocol, asyncio.Protocol)
            protocol.data_received(packet[:size])

    def _on_window(self, size: int) -> None:
        back = self.peer._outbox.link
        if back.is_open:
            self._on_read(size)
        else:
            back.carry(0, lambda: self._on_read(size))

    def _on_finish(self) -> None:
        if self._closing:
            return
        protocol = self.get_protocol()
        stays = protocol.eof_received()  # type: ignore[attr-defined]
        if not stays:
            self.close()

    def _lose(self, error: Exception | None) -> None:
        self.is_lost = True
        self._network.forget(self)
        self._loop.call_soon(self._report_loss, error, context=self.process.context)

    def _report_loss(self, error: Exception | None) -> None:
        if self._protocol is not None:
            self._protocol.connection_lost(error)
