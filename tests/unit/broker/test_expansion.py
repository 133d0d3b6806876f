"""Laws of turns: large expansions of all connections together take a third of the loop's time."""

import itertools

from ottla.broker.produce.parts import Turns
from ottla.record.validation import Expansion
from ottla.testing.clock import ManualClock

MEBIBYTE = 1 << 20


class Muted:
    """A connection, as far as turns are concerned: until when it is muted."""

    def __init__(self, clock):
        self._clock = clock
        self.until_ms = 0

    def mute(self, delay_ms):
        self.until_ms = self._clock.monotonic_ms() + delay_ms


def expand(turns, clock, connection, size_bytes=30 * MEBIBYTE, takes_ms=90):
    expansion = Expansion()
    expansion.size_bytes = size_bytes
    began_ms = clock.monotonic_ms()
    clock.advance(takes_ms)
    turns.let_others_in(connection, expansion, began_ms)


def test_a_connection_that_had_little_expanded_is_not_muted():
    """Four mebibytes of a request are usual."""
    clock = ManualClock()
    connection = Muted(clock)
    expand(Turns(clock), clock, connection, 4 * MEBIBYTE, 12)
    assert connection.until_ms == 0


def test_connections_are_served_again_one_after_the_other():
    """However many there are, twice the time that an expansion took lies between two of them."""
    clock = ManualClock()
    turns, connections = Turns(clock), [Muted(clock) for _ in range(8)]
    for connection in connections:
        expand(turns, clock, connection)
    ends_ms = [connection.until_ms for connection in connections]
    gaps_ms = [after - before for before, after in itertools.pairwise(ends_ms)]
    assert gaps_ms == [180] * 7


def test_no_connection_waits_for_longer_than_ten_seconds():
    """Its client would take the broker for dead."""
    clock = ManualClock()
    turns, connections = Turns(clock), [Muted(clock) for _ in range(200)]
    for connection in connections:
        expand(turns, clock, connection)
    assert max(one.until_ms for one in connections) - clock.monotonic_ms() == 10_000
