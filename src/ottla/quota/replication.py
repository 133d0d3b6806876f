"""The throttles of replication: their rate, and the replicas to which they apply.

The replicas are in the settings `leader.replication.throttled.replicas` and
`follower.replication.throttled.replicas`.
"""

from collections.abc import Mapping, Sequence

from ottla.base.ids import BrokerId
from ottla.quota.rates import WindowedRate

UNLIMITED = 2**63 - 1
# Bytes are granted in portions for this much time: smaller portions would cost more requests.
_PORTION_MS = 100


class ReplicationQuota:
    """How many bytes throttled replicas may replicate now.

    Since the first byte, at most the rate times the elapsed time is replicated, except for the part
    of the last batch that exceeds the portion.
    """

    def __init__(self, *, window_num: int, window_ms: int) -> None:
        self._window_num = window_num
        self._window_ms = window_ms
        self._rate: WindowedRate | None = None

    @property
    def is_limited(self) -> bool:
        return self._rate is not None

    def set_rate(self, bytes_per_s: int) -> None:
        """Change the limit, in bytes per second; bytes replicated before no longer count."""
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
        """Bytes that may be replicated now; 0 if there is less than a portion."""
        rate = self._rate
        if rate is None:
            return UNLIMITED
        if rate.limit == 0 or rate.wait_ms(now_ms, _portion(rate)):
            return 0
        return max(1, int(rate.available(now_ms)))

    def wait_ms(self, now_ms: int) -> int:
        """Milliseconds until a portion is available."""
        rate = self._rate
        if rate is None:
            return 0
        return rate.wait_ms(now_ms, _portion(rate) if rate.limit else 1)

    def record(self, size: int, now_ms: int) -> None:
        """Count bytes that were replicated."""
        if self._rate is not None:
            self._rate.record(size, now_ms)


def _portion(rate: WindowedRate) -> float:
    return rate.limit * _PORTION_MS / 1000


# Partitions by topic; None means all partitions of the topic.
ThrottledPartitions = Mapping[str, frozenset[int] | None]

_ALL = "*"


def throttled_here(items: Sequence[str], broker_id: BrokerId) -> frozenset[int] | None:
    """The partitions whose replica on `broker_id` is throttled; None for all.

    `items` are `partition:broker`, or a single `*`; they were validated when they were set.
    """
    if _ALL in items:
        return None
    pairs = (item.split(":") for item in items)
    return frozenset(int(partition) for partition, broker in pairs if int(broker) == broker_id)


def is_throttled(throttled: ThrottledPartitions, topic: str, partition: int) -> bool:
    """Whether a partition is in `throttled`."""
    if topic not in throttled:
        return False
    partitions = throttled[topic]
    return partitions is None or partition in partitions
