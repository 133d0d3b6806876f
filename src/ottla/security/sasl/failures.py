"""How long the answer to a failed login is delayed: longer for a user that fails often.

Failures count for the user that a login names, whether there is such a user or not, at its address:
a client behind the same gateway learns its own reason without waiting for the mistakes of another.
What one address may try in all, `quota.failing_addresses` bounds.
"""

from ottla.base.addresses import counted_address

# A user that has not failed for so long is forgotten.
_FORGOTTEN_MS = 60_000
_DELAY_MS_MAX = 5_000
# Users that are remembered; the one that failed longest ago is forgotten for a new one.
_REMEMBERED_MAX = 10_000
_NAME_CHARACTERS_MAX = 100


class FailedLogins:
    """Counts failures per user and address. Times are ms of a clock that never goes back."""

    def __init__(self, delay_ms: int) -> None:
        """`delay_ms` is that of the first failures; from the third on it doubles with each."""
        self.count = 0
        self._delay_ms = delay_ms
        # Failures in a row, and when the last one was; the latest is the last.
        self._failed: dict[tuple[str, str], tuple[int, int]] = {}

    def failed(self, address: str, user: str, now_ms: int) -> int:
        """Count a failure: for how many milliseconds its answer is to be delayed."""
        self.count += 1
        key = counted_address(address), user[:_NAME_CHARACTERS_MAX]
        failures, last_ms = self._failed.pop(key, (0, now_ms))
        if now_ms - last_ms > _FORGOTTEN_MS:
            failures = 0
        while len(self._failed) >= _REMEMBERED_MAX:
            del self._failed[next(iter(self._failed))]
        self._failed[key] = failures + 1, now_ms
        # A client's first five tries learn their reason within a second.
        doubled = self._delay_ms << min(max(0, failures - 1), 16)
        return max(self._delay_ms, min(doubled, _DELAY_MS_MAX))
