"""What one end of a connection has sent and the other has not received yet.

Bytes written wait here until the receiver's window has room, and then travel, in packets.
"""

from collections import deque
from collections.abc import Callable
from enum import Enum

from ottla.testing.simulation.network.link import Link

_WINDOW_BYTES = 256 << 10
_PACKET_BYTES = 64 << 10
_HEADER_BYTES = 60


class Mark(Enum):
    """What ends a stream: in order, or at once."""

    FINISH = 1
    RESET = 2


Packet = bytes | Mark


class Outbox:
    """One direction of a connection, over `link`; `deliver` is called with what arrives."""

    def __init__(self, link: Link, deliver: Callable[[Packet], None]) -> None:
        self.link = link
        self._deliver = deliver
        self._unsent: deque[bytes] = deque()
        self.unsent_bytes = 0
        self._travelling_bytes = 0
        self._packets: deque[Packet] = deque()
        # A connection that stands still in this direction, while others of its hosts do not.
        self.is_stalled = False
        self._overdue = 0

    @property
    def is_empty(self) -> bool:
        """Whether all that was written is on its way."""
        return not self._unsent

    def put(self, data: bytes) -> None:
        """Send as soon as there is room."""
        self._unsent.append(data)
        self.unsent_bytes += len(data)
        self._send()

    def post(self, packet: Packet) -> None:
        """Let a packet travel, whatever room there is."""
        self._packets.append(packet)
        size = _HEADER_BYTES if isinstance(packet, Mark) else _HEADER_BYTES + len(packet)
        self.link.carry(size, self._on_arrival)

    def forget(self) -> None:
        """Send nothing of what waits."""
        self._unsent.clear()
        self.unsent_bytes = 0

    def on_read(self, size: int, *, goes_on: bool) -> None:
        """The other end has read: there is room in its window, for an end that goes on."""
        self._travelling_bytes -= size
        if goes_on:
            self._send()

    def release(self) -> None:
        """Let pass what stood still."""
        self.is_stalled = False
        overdue, self._overdue = self._overdue, 0
        for _ in range(overdue):
            self._on_arrival()

    def _send(self) -> None:
        unsent = self._unsent
        while unsent and self._travelling_bytes < _WINDOW_BYTES:
            packet = unsent.popleft()
            if len(packet) > _PACKET_BYTES:
                unsent.appendleft(packet[_PACKET_BYTES:])
                packet = packet[:_PACKET_BYTES]
            self.unsent_bytes -= len(packet)
            self._travelling_bytes += len(packet)
            self.post(packet)

    def _on_arrival(self) -> None:
        """The oldest packet on its way is at the other host."""
        if self.is_stalled:
            self._overdue += 1
        else:
            self._deliver(self._packets.popleft())
