"""A token bucket that may be overdrawn: the quota of changes of topics (KIP-599)."""

from math import ceil


class TokenBucket:
    """`limit` tokens a second, up to `burst_s` seconds' worth at a time; at first it is full.

    A request is granted whole while the bucket is not overdrawn, and may overdraw it: a topic
    with many partitions is created at once, and later requests wait.
    """

    __slots__ = ("_burst", "_filled_ms", "_tokens", "limit")

    def __init__(self, limit: float, *, burst_s: float, now_ms: int) -> None:
        assert limit > 0
        self.limit = limit
        self._burst = limit * burst_s
        self._tokens = self._burst
        self._filled_ms = now_ms

    def record(self, amount: float, now_ms: int) -> int:
        """Take `amount` tokens, and return how long to wait then, in milliseconds."""
        self._fill(now_ms)
        self._tokens -= amount
        return self._debt_ms()

    def wait_ms(self, now_ms: int) -> int:
        """How long until the bucket is not overdrawn; 0 for now."""
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
