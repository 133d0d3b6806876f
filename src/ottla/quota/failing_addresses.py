"""Addresses whose clients fail to log in: how long their new connections wait.

A login that fails, or is given up, costs a broker more than the client that repeats it. So the
delay of one answer (`security.sasl.failures`) is not enough: clients that do not wait for it are
slowed where they connect, one address that fails too often, and where many do, all that failed.
Connections that are open, and addresses that did not fail, are not concerned. The addresses of an
IPv6 /64 are one.
"""

from ottla.base.addresses import counted_address

# So many seconds' worth of failures may come at once.
_BURST_S = 2
# No more is counted, so that an address is forgiven soon after its last failure.
_LEVEL_S_MAX = 10
# All addresses together may fail so many times as often as one.
_ALL = 2
# A new connection that would have to wait for longer is closed, after this time: a client that
# connects again at once is slowed, too. So many are kept in any such time; others are closed now.
_WAIT_MS_MAX = 5_000
_KEPT_MAX = 1_000
# Addresses that are remembered; the one that failed longest ago is forgotten for a new one.
_ADDRESSES_MAX = 10_000


class _Pace:
    """Failures that time has not forgiven, and when the next connection may be served."""

    __slots__ = ("free_ms", "last_ms", "level")

    def __init__(self, now_ms: int) -> None:
        # As of `last_ms`.
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
        """`rate` is `max.failed.authentication.rate`: so many a second do not slow an address."""
        self.rate = rate
        # In the order of their last failures.
        self._addresses: dict[str, _Pace] = {}
        self._all = _Pace(0)
        # Connections that were kept to be closed later, since when.
        self._kept = 0
        self._kept_since_ms = 0

    def failed(self, address: str, now_ms: int) -> None:
        """A connection of `address` ended, or is to end, without a login."""
        address = counted_address(address)
        found = self._addresses.pop(address, None) or _Pace(now_ms)
        found.failed(now_ms, self.rate)
        self._all.failed(now_ms, self.rate * _ALL)
        while len(self._addresses) >= _ADDRESSES_MAX:
            del self._addresses[next(iter(self._addresses))]
        self._addresses[address] = found

    def wait_ms(self, address: str, now_ms: int) -> int | None:
        """When a new connection of `address` is to be served; None: it is to be closed."""
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
        """When a connection that is not to be served is to be closed."""
        if now_ms - self._kept_since_ms >= _WAIT_MS_MAX:
            self._kept, self._kept_since_ms = 0, now_ms
        self._kept += 1
        return _WAIT_MS_MAX if self._kept <= _KEPT_MAX else 0
