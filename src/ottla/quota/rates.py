"""Rates: a token bucket, and a rate over windows.

Use is counted in windows of equal length, as in Kafka: the amount allowed grows with the time that
the windows cover. Unlike in Kafka, an excess does not expire with its window but counts in the next
one: otherwise many connections that send at the same time would use the excess unthrottled.
"""

from collections import deque
from math import ceil


class TokenBucket:
    """A bucket that gets `limit` tokens per second and holds those of `burst_s` seconds.

    It is full at first. While it is not overdrawn, a request may take any number of tokens, and so
    overdraw it. So a topic with many partitions is created at once, and later requests wait.
    """

    __slots__ = ("_burst", "_filled_ms", "_tokens", "limit")

    def __init__(self, limit: float, *, burst_s: float, now_ms: int) -> None:
        assert limit > 0
        self.limit = limit
        self._burst = limit * burst_s
        self._tokens = self._burst
        self._filled_ms = now_ms

    def record(self, amount: float, now_ms: int) -> int:
        """Take `amount` tokens, and return the throttle time in milliseconds."""
        self._fill(now_ms)
        self._tokens -= amount
        return self._debt_ms()

    def wait_ms(self, now_ms: int) -> int:
        """Return for how many milliseconds the bucket stays overdrawn; 0 if it is not."""
        self._fill(now_ms)
        return self._debt_ms()

    def at_rest(self, now_ms: int) -> bool:
        """Whether the bucket is as full as a new one."""
        self._fill(now_ms)
        return self._tokens >= self._burst

    def _debt_ms(self) -> int:
        return ceil(max(0.0, -self._tokens) * 1000 / self.limit)

    def _fill(self, now_ms: int) -> None:
        earned = self.limit * (now_ms - self._filled_ms) / 1000
        self._tokens = min(self._tokens + earned, self._burst)
        self._filled_ms = now_ms


class WindowedRate:
    """The use of one quota key by one entity, limited to `limit` per second.

    Invariant: `_used` has the use in each window, the oldest first. The first window begins at
    `_start_ms`, and its use is not 0. Without recent use `_used` is empty.
    """

    __slots__ = ("_grace_ms", "_start_ms", "_used", "_window_ms", "_window_num", "limit")

    def __init__(self, limit: float, *, window_num: int, window_ms: int, grace_ms: int) -> None:
        """Start with nothing used. The amount allowed in `grace_ms` may be used at once."""
        assert limit >= 0
        assert window_num > 0
        assert window_ms > 0
        self.limit = limit
        self._window_num = window_num
        self._window_ms = window_ms
        self._grace_ms = grace_ms
        self._start_ms = 0
        self._used: deque[float] = deque()

    # Hot: once per request of a client with a quota.
    def record(self, amount: float, now_ms: int) -> int:
        """Count `amount` (>= 0) as used, and return the throttle time in milliseconds."""
        self._roll(now_ms)
        used = self._used
        if amount > 0:
            if not used:
                self._start_ms = now_ms
            window = (now_ms - self._start_ms) // self._window_ms
            while len(used) <= window:
                used.append(0.0)
            used[window] += amount
        return self._wait_ms(0.0, now_ms)

    def available(self, now_ms: int) -> float:
        """Return the amount that may be used now; negative if the limit is exceeded."""
        self._roll(now_ms)
        return self._worth(now_ms) - sum(self._used)

    def wait_ms(self, now_ms: int, amount: float = 0.0) -> int:
        """Milliseconds until `amount` may be used; 0 if it may be used now."""
        self._roll(now_ms)
        return self._wait_ms(amount, now_ms)

    def rate(self, now_ms: int) -> float:
        """The use per second over the windows that are kept."""
        self._roll(now_ms)
        if not self._used:
            return 0.0
        return sum(self._used) * 1000 / max(now_ms - self._start_ms, self._window_ms)

    def at_rest(self, now_ms: int) -> bool:
        """Whether no window is kept, so that a new object would give the same results."""
        self._roll(now_ms)
        return not self._used

    def _worth(self, now_ms: int) -> float:
        """The amount allowed from the beginning of the first window until now."""
        elapsed_ms = now_ms - self._start_ms if self._used else 0
        return self.limit * (elapsed_ms + self._grace_ms) / 1000

    def _wait_ms(self, amount: float, now_ms: int) -> int:
        wanted = sum(self._used) + amount
        if wanted <= self._worth(now_ms):
            return 0
        longest_ms = self._window_num * self._window_ms
        if self.limit == 0:
            return longest_ms
        elapsed_ms = now_ms - self._start_ms if self._used else 0
        return max(1, ceil(wanted * 1000 / self.limit - elapsed_ms - self._grace_ms))

    def _roll(self, now_ms: int) -> None:
        """Drop windows that are too old, and carry their excess into the next window."""
        used = self._used
        old = (now_ms - self._start_ms) // self._window_ms - self._window_num + 1
        worth = self.limit * self._window_ms / 1000
        while old > 0 and used:
            # If only one window is left, the empty ones after it expire with it in one step.
            count = old if len(used) == 1 else 1
            excess = used.popleft() - worth * count
            self._start_ms += self._window_ms * count
            old -= count
            if excess > 0:
                if used:
                    used[0] += excess
                else:
                    used.append(excess)
            while used and used[0] == 0:
                # Empty windows allow no later use: drop them.
                used.popleft()
                self._start_ms += self._window_ms
                old -= 1
