"""One direction between two hosts: how long bytes take, whether they arrive, and what waits.

As with TCP, what a cut swallows is sent again: it arrives, in its order, some time after the cut
has ended, unless its connection was given up meanwhile. Bytes written wait in an `Outbox` until the
receiver's window has room, and then travel, in packets.
"""

from collections import deque
from collections.abc import Callable
from contextvars import Context
from enum import Enum
from random import Random

from ottla.testing.simulation.virtual.loop import VirtualLoop

Arrival = Callable[[], None]

# What happens between hosts happens in no process.
KERNEL = Context()
# After a cut it takes so long at most until the sender tries again.
_RESEND_S = 0.4


class Link:
    """Carries arrivals from one host to another. Times in seconds."""

    def __init__(self, loop: VirtualLoop, source: str, target: str, chance: Random) -> None:
        self._loop = loop
        self.source = source
        self.target = target
        self._chance = chance
        self.latency_s = 0.0001 + 0.0004 * chance.random()
        # The mean of what comes on top, differently each time.
        self.jitter_s = 0.0001
        self.bytes_per_s = 100e6
        self._slowness = 1
        # How many reasons there are for nothing to pass.
        self._cuts = 0
        self._free_at_s = 0.0
        self._held: list[Arrival] = []

    @property
    def is_open(self) -> bool:
        return self._cuts == 0

    def carry(self, size: int, arrival: Arrival) -> None:
        """Call `arrival` when `size` bytes have come over, which may be after a cut."""
        loop = self._loop
        self._free_at_s = max(self._free_at_s, loop.time()) + size / self.bytes_per_s
        jitter_s = self.jitter_s * self._chance.expovariate(1.0)
        at_s = self._free_at_s + (self.latency_s + jitter_s) * self._slowness
        loop.call_at(at_s, self._arrive, arrival, context=KERNEL)

    def slow_down(self, factor: int) -> None:
        """Take `factor` times as long from now on."""
        self._slowness = factor

    def cut(self) -> None:
        """Let nothing pass until `heal` has been called as often as this."""
        self._cuts += 1

    def heal(self) -> None:
        assert self._cuts > 0
        self._cuts -= 1
        if self.is_open and self._held:
            delay_s = _RESEND_S * self._chance.random()
            self._loop.call_later(delay_s, self._release, context=KERNEL)

    def _arrive(self, arrival: Arrival) -> None:
        if self._cuts:
            self._held.append(arrival)
        else:
            arrival()

    def _release(self) -> None:
        if self.is_open:
            held, self._held = self._held, []
            for arrival in held:
                arrival()


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
