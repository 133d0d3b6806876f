"""How long the answer to a failed login is delayed: longer for an address that fails often."""

# An address that has not failed for so long is forgotten.
_FORGOTTEN_MS = 60_000
_DELAY_MS_MAX = 5_000
# Addresses that are remembered; the one that failed longest ago is forgotten for a new one.
_ADDRESSES_MAX = 10_000


class FailedLogins:
    """Counts failures per address. Times are milliseconds of a clock that never goes back."""

    def __init__(self, delay_ms: int) -> None:
        """`delay_ms` is that of the first failure; it doubles with each one that follows soon."""
        self.count = 0
        self._delay_ms = delay_ms
        # Failures in a row, and when the last one was; the latest address is the last.
        self._addresses: dict[str, tuple[int, int]] = {}

    def failed(self, address: str, now_ms: int) -> int:
        """Count a failure: for how many milliseconds its answer is to be delayed."""
        self.count += 1
        failures, last_ms = self._addresses.pop(address, (0, now_ms))
        if now_ms - last_ms > _FORGOTTEN_MS:
            failures = 0
        while len(self._addresses) >= _ADDRESSES_MAX:
            del self._addresses[next(iter(self._addresses))]
        self._addresses[address] = failures + 1, now_ms
        doubled = self._delay_ms << min(failures, 16)
        return max(self._delay_ms, min(doubled, _DELAY_MS_MAX))
