"""Delays new connections of addresses whose clients fail to log in.

A login that fails, or is given up, costs a broker more than the client that repeats it. Clients
that do not wait for the delayed response (`security.sasl.failures`) are therefore slowed when they
connect: an address that fails too often, and, if many addresses do, all that failed. Open
connections, and addresses that did not fail, are not affected. The addresses of an IPv6 /64 are
treated as one.
"""

from ottla.base.fairness import counted_address

# Failures allowed at once, in seconds of the rate.
_BURST_S = 2
# The count is limited, so that an address is forgiven soon after its last failure.
_LEVEL_S_MAX = 10
# All addresses together may fail this many times as often as a single one.
_ALL = 2
# A new connection that would wait longer is closed after this time, to slow clients that reconnect
# at once. This many connections are kept for that; others are closed immediately.
_WAIT_MS_MAX = 5_000
_KEPT_MAX = 1_000
# Addresses remembered; the one with the oldest failure is dropped for a new one.
_ADDRESSES_MAX = 10_000


class _Pace:
    """The failures still counted, and when the next connection may be served."""

    __slots__ = ("free_ms", "last_ms", "level")

    def __init__(self, now_ms: int) -> None:
        # The level at `last_ms`.
        self.level = 0.0
        self.last_ms = now_ms
        self.free_ms = now_ms

    def level_at(self, now_ms: int, rate: float) -> float:
        return max(0.0, self.level - (now_ms - self.last_ms) * rate / 1000)

    def failed(self, now_ms: int, rate: float) -> None:
        self.level = min(self.level_at(now_ms, rate) + 1, rate * _LEVEL_S_MAX)
        self.last_ms = now_ms

    def is_too_fast(self, now_ms: int, rate: float) -> bool:
        return self.level_at(now_ms, rate) > rate * _BURST_S


class FailingAddresses:
    """Failures by address. Times are milliseconds of a clock that never goes back."""

    def __init__(self, rate: int) -> None:
        """`rate` is `max.failed.authentication.rate`.

        Fewer failures per second do not slow an address.
        """
        self.rate = rate
        # In the order of their last failures.
        self._addresses: dict[str, _Pace] = {}
        self._all = _Pace(0)
        # Connections kept to be closed later, and the start of that interval.
        self._kept = 0
        self._kept_since_ms = 0

    def failed(self, address: str, now_ms: int) -> None:
        """Count a connection of `address` that ended, or will end, without a login."""
        address = counted_address(address)
        found = self._addresses.pop(address, None) or _Pace(now_ms)
        found.failed(now_ms, self.rate)
        self._all.failed(now_ms, self.rate * _ALL)
        while len(self._addresses) >= _ADDRESSES_MAX:
            del self._addresses[next(iter(self._addresses))]
        self._addresses[address] = found

    def wait_ms(self, address: str, now_ms: int) -> int | None:
        """Return when to serve a new connection, in ms from now; None if it must be closed."""
        found = self._addresses.get(counted_address(address))
        if found is None:
            return 0
        turn_ms = now_ms
        if found.is_too_fast(now_ms, self.rate):
            turn_ms = max(turn_ms, found.free_ms)
        is_one_of_many = self._all.is_too_fast(now_ms, self.rate * _ALL) and (
            now_ms - found.last_ms < _LEVEL_S_MAX * 1000
        )
        if is_one_of_many:
            turn_ms = max(turn_ms, self._all.free_ms)
        if turn_ms - now_ms > _WAIT_MS_MAX:
            return None
        found.free_ms = turn_ms + max(1, 1000 // self.rate)
        if is_one_of_many:
            self._all.free_ms = turn_ms + max(1, 1000 // (self.rate * _ALL))
        return turn_ms - now_ms

    def close_after_ms(self, now_ms: int) -> int:
        """Return when to close a refused connection, in ms from now."""
        if now_ms - self._kept_since_ms >= _WAIT_MS_MAX:
            self._kept, self._kept_since_ms = 0, now_ms
        self._kept += 1
        return _WAIT_MS_MAX if self._kept <= _KEPT_MAX else 0
