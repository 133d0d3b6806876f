"""One direction between two hosts: how long bytes take, and whether they arrive at all.

As with TCP, what a cut swallows is sent again: it arrives, in its order, some time after the cut
has ended, unless its connection was given up meanwhile.
"""

from collections.abc import Callable
from contextvars import Context
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
