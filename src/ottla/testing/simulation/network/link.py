"""One direction between two hosts: its delay, its cuts, and the bytes that wait to be sent.

As with TCP, packets lost by a cut are sent again: they arrive in order, some time after the cut
has ended, unless the connection was closed meanwhile. Written bytes wait in an `Outbox` until the
receiver's window has room, and are then sent in packets.
"""

from collections import deque
from collections.abc import Callable
from contextvars import Context
from enum import Enum
from random import Random

from ottla.testing.simulation.virtual.loop import VirtualLoop

Arrival = Callable[[], None]

# The context of events between hosts, which belong to no process.
KERNEL = Context()
# The longest delay between the end of a cut and the next attempt to send.
_RESEND_S = 0.4


class Link:
    """Delivers packets from one host to another, by calls of `arrival`. Times in seconds."""

    def __init__(self, loop: VirtualLoop, source: str, target: str, chance: Random) -> None:
        self._loop = loop
        self.source = source
        self.target = target
        self._chance = chance
        self.latency_s = 0.0001 + 0.0004 * chance.random()
        # The mean of a random delay that is added to each packet's latency.
        self.jitter_s = 0.0001
        self.bytes_per_s = 100e6
        self._slowness = 1
        # The number of cuts that are not healed yet; packets pass only if it is 0.
        self._cuts = 0
        self._free_at_s = 0.0
        self._held: list[Arrival] = []

    @property
    def is_open(self) -> bool:
        return self._cuts == 0

    def carry(self, size: int, arrival: Arrival) -> None:
        """Call `arrival` once `size` bytes have arrived; if the link is cut, after the cut."""
        loop = self._loop
        self._free_at_s = max(self._free_at_s, loop.time()) + size / self.bytes_per_s
        jitter_s = self.jitter_s * self._chance.expovariate(1.0)
        at_s = self._free_at_s + (self.latency_s + jitter_s) * self._slowness
        loop.call_at(at_s, self._arrive, arrival, context=KERNEL)

    def slow_down(self, factor: int) -> None:
        """Make the latency `factor` times as long from now on."""
        self._slowness = factor

    def cut(self) -> None:
        """Block all packets until `heal` has been called once for each `cut`."""
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
    """The end of a stream: FIN (in order), or RST (at once)."""

    FINISH = 1
    RESET = 2


Packet = bytes | Mark


class Outbox:
    """One direction of a connection over `link`; calls `deliver` with each packet that arrives."""

    def __init__(self, link: Link, deliver: Callable[[Packet], None]) -> None:
        self.link = link
        self._deliver = deliver
        self._unsent: deque[bytes] = deque()
        self.unsent_bytes = 0
        self._travelling_bytes = 0
        self._packets: deque[Packet] = deque()
        # Whether this direction stands still, although the link does not.
        self.is_stalled = False
        self._overdue = 0

    @property
    def is_empty(self) -> bool:
        """Whether all written bytes have been sent."""
        return not self._unsent

    def put(self, data: bytes) -> None:
        """Send bytes as soon as the receiver's window has room."""
        self._unsent.append(data)
        self.unsent_bytes += len(data)
        self._send()

    def post(self, packet: Packet) -> None:
        """Send a packet at once, even if the window is full."""
        self._packets.append(packet)
        size = _HEADER_BYTES if isinstance(packet, Mark) else _HEADER_BYTES + len(packet)
        self.link.carry(size, self._on_arrival)

    def forget(self) -> None:
        """Discard the bytes that are not sent yet."""
        self._unsent.clear()
        self.unsent_bytes = 0

    def on_read(self, size: int, *, goes_on: bool) -> None:
        """Note that the receiver has read `size` bytes; if `goes_on`, send more."""
        self._travelling_bytes -= size
        if goes_on:
            self._send()

    def release(self) -> None:
        """End a stall, and deliver the packets that arrived during it."""
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
        """Deliver the oldest packet on its way, or note that it is overdue."""
        if self.is_stalled:
            self._overdue += 1
        else:
            self._deliver(self._packets.popleft())
