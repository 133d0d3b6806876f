"""A token bucket that may be overdrawn: for the quota `controller_mutation_rate` (KIP-599)."""

from math import ceil


class TokenBucket:
    """A bucket that gets `limit` tokens per second and holds those of `burst_s` seconds.

    It is full at first. While it is not overdrawn, a request may take any number of tokens and so
    overdraw it: a topic with many partitions is created at once, and later requests wait.
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
        """Milliseconds until the bucket is not overdrawn; 0 if it is not."""
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
