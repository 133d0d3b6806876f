"""Addresses whose clients fail to log in: how long their new connections wait.

A login that fails, or is given up, costs a broker more than the client that repeats it. So the
delay of one answer (`security.sasl.failures`) is not enough: clients that do not wait for it are
slowed where they connect. Connections that are open, and other addresses, are not concerned.
"""

# So many seconds' worth of failures may come at once.
_BURST_S = 2
# No more is counted, so that an address is forgiven soon after its last failure.
_LEVEL_S_MAX = 10
# A new connection that would have to wait for longer is closed.
_WAIT_MS_MAX = 5_000
# Addresses that are remembered; the one that failed longest ago is forgotten for a new one.
_ADDRESSES_MAX = 10_000


class _Address:
    __slots__ = ("free_ms", "last_ms", "level")

    def __init__(self, now_ms: int) -> None:
        # Failures that time has not forgiven, when it last failed.
        self.level = 0.0
        self.last_ms = now_ms
        # From when on its next connection may be served.
        self.free_ms = now_ms


class FailingAddresses:
    """Failures by address. Times are milliseconds of a clock that never goes back."""

    def __init__(self, rate: int) -> None:
        """`rate` is `max.failed.authentication.rate`: so many a second do not slow an address."""
        self.rate = rate
        # In the order of their last failures.
        self._addresses: dict[str, _Address] = {}

    def failed(self, address: str, now_ms: int) -> None:
        """A connection of `address` ended, or is to end, without a login."""
        found = self._addresses.pop(address, None) or _Address(now_ms)
        found.level = min(self._level(found, now_ms) + 1, self.rate * _LEVEL_S_MAX)
        found.last_ms = now_ms
        while len(self._addresses) >= _ADDRESSES_MAX:
            del self._addresses[next(iter(self._addresses))]
        self._addresses[address] = found

    def wait_ms(self, address: str, now_ms: int) -> int | None:
        """When a new connection of `address` is to be served; None: it is to be closed."""
        found = self._addresses.get(address)
        if found is None or self._level(found, now_ms) <= self.rate * _BURST_S:
            return 0
        turn_ms = max(now_ms, found.free_ms)
        if turn_ms - now_ms > _WAIT_MS_MAX:
            return None
        found.free_ms = turn_ms + max(1, 1000 // self.rate)
        return turn_ms - now_ms

    def _level(self, found: _Address, now_ms: int) -> float:
        return max(0.0, found.level - (now_ms - found.last_ms) * self.rate / 1000)
