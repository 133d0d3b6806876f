"""The share of the network that copying replicas may take (KIP-73), one way, on one broker."""

from ottla.quota.windowed_rate import WindowedRate

UNLIMITED = 2**63 - 1
# Bytes are granted in portions worth this much time: smaller ones cost more requests.
_PORTION_MS = 100


class ReplicationQuota:
    """How many bytes replicas that are throttled may still copy.

    From the first byte on, no more is copied than the rate allows for the time since, except
    for the excess of the last batch.
    """

    def __init__(self, *, window_num: int, window_ms: int) -> None:
        self._window_num = window_num
        self._window_ms = window_ms
        self._rate: WindowedRate | None = None

    @property
    def is_limited(self) -> bool:
        return self._rate is not None

    def set_rate(self, bytes_per_s: int) -> None:
        """Change the limit; bytes copied before are no longer counted."""
        if bytes_per_s >= UNLIMITED:
            self._rate = None
        elif self._rate is None or self._rate.limit != bytes_per_s:
            self._rate = WindowedRate(
                bytes_per_s,
                window_num=self._window_num,
                window_ms=self._window_ms,
                grace_ms=_PORTION_MS,
            )

    def available(self, now_ms: int) -> int:
        """Bytes that may be copied now; 0 where there is too little for a portion."""
        rate = self._rate
        if rate is None:
            return UNLIMITED
        if rate.limit == 0 or rate.wait_ms(now_ms, _portion(rate)):
            return 0
        return max(1, int(rate.available(now_ms)))

    def wait_ms(self, now_ms: int) -> int:
        """How long until a portion is available."""
        rate = self._rate
        if rate is None:
            return 0
        return rate.wait_ms(now_ms, _portion(rate) if rate.limit else 1)

    def record(self, size: int, now_ms: int) -> None:
        """Count bytes that were copied."""
        if self._rate is not None:
            self._rate.record(size, now_ms)


def _portion(rate: WindowedRate) -> float:
    return rate.limit * _PORTION_MS / 1000
