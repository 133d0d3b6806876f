"""Replication throttles (KIP-73): the rates of this broker, and the replicas they apply to.

While the rate is used up, a leader omits throttled partitions from its answers to out-of-sync
followers, and a follower does not request them. In-sync replicas are never throttled and their
bytes are not counted, so a reassignment cannot push a replica out of the ISR.
"""

from collections.abc import Callable, Mapping

from ottla.base.clock import Clock
from ottla.base.ids import BrokerId
from ottla.base.settings import BrokerSettings
from ottla.broker.partitions.partition import Partition
from ottla.metadata.image import ClusterImage, TopicImage
from ottla.quota.replication import (
    ReplicationQuota,
    ThrottledPartitions,
    is_throttled,
    throttled_here,
)

_LEADER_RATE = "leader.replication.throttled.rate"
_FOLLOWER_RATE = "follower.replication.throttled.rate"
_MOVE_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
_LEADER_REPLICAS = "leader.replication.throttled.replicas"
_FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"


class ReplicaThrottle:
    """One direction of replication: its rate, and the replicas it applies to."""

    def __init__(
        self, quota: ReplicationQuota, clock: Clock, exempt: Callable[[Partition, BrokerId], bool]
    ) -> None:
        """`exempt(partition, follower)` returns whether a follower is in sync, so not throttled."""
        self.quota = quota
        # Whether anything is throttled at all.
        self.is_on = False
        self._replicas: ThrottledPartitions = {}
        self._now_ms = clock.monotonic_ms
        self._exempt = exempt

    def set(self, bytes_per_s: int, replicas: ThrottledPartitions) -> None:
        """Set the rate and the throttled replicas."""
        self.quota.set_rate(bytes_per_s)
        self._replicas = replicas
        self.is_on = self.quota.is_limited and bool(replicas)

    def covers(self, partition: Partition, follower: BrokerId) -> bool:
        """Whether the throttle applies to `follower` fetching `partition`."""
        name = partition.topic_partition
        return (
            self.is_on
            and is_throttled(self._replicas, name.topic, name.partition)
            and not self._exempt(partition, follower)
        )

    def available(self) -> int:
        """Bytes that may be copied now; 0 for none."""
        return self.quota.available(self._now_ms())

    def wait_ms(self) -> int:
        """Return the milliseconds until bytes may be copied."""
        return self.quota.wait_ms(self._now_ms())

    def record(self, size: int) -> None:
        """Count throttled bytes as copied."""
        self.quota.record(size, self._now_ms())


class Throttles:
    """All throttles of one broker: as leader, as follower, and between log directories."""

    def __init__(self, settings: BrokerSettings, clock: Clock) -> None:
        self._settings = settings
        self._broker_id = BrokerId(settings.broker_id)
        num = settings.integer("replication.quota.window.num")
        window_ms = settings.integer("replication.quota.window.size.seconds") * 1000
        self.leader = ReplicaThrottle(
            ReplicationQuota(window_num=num, window_ms=window_ms), clock, _is_in_sync
        )
        self.follower = ReplicaThrottle(
            ReplicationQuota(window_num=num, window_ms=window_ms), clock, _has_caught_up
        )
        move_num = settings.integer("alter.log.dirs.replication.quota.window.num")
        move_s = settings.integer("alter.log.dirs.replication.quota.window.size.seconds")
        # Moves between log directories are throttled for every replica.
        self.moves = ReplicationQuota(window_num=move_num, window_ms=move_s * 1000)
        self._topics: Mapping[str, TopicImage] = {}
        self._leading: ThrottledPartitions = {}
        self._following: ThrottledPartitions = {}

    def configure(self, image: ClusterImage) -> None:
        """Apply the current rates and lists of throttled replicas."""
        settings = self._settings
        if image.topics is not self._topics:
            self._topics = image.topics
            self._leading = self._listed(image, _LEADER_REPLICAS)
            self._following = self._listed(image, _FOLLOWER_REPLICAS)
        self.leader.set(settings.integer(_LEADER_RATE), self._leading)
        self.follower.set(settings.integer(_FOLLOWER_RATE), self._following)
        self.moves.set_rate(settings.integer(_MOVE_RATE))

    def _listed(self, image: ClusterImage, setting: str) -> dict[str, frozenset[int] | None]:
        listed: dict[str, frozenset[int] | None] = {}
        for name, topic in image.topics.items():
            text = topic.configs.get(setting)
            if text:
                items = [item.strip() for item in text.split(",") if item.strip()]
                partitions = throttled_here(items, self._broker_id)
                if partitions is None or partitions:
                    listed[name] = partitions
        return listed


def _is_in_sync(partition: Partition, follower: BrokerId) -> bool:
    """Whether the follower is in the leader's ISR."""
    return partition.leader is not None and follower in partition.leader.term.isr


def _has_caught_up(partition: Partition, _follower: BrokerId) -> bool:
    """Whether this follower has reached the high watermark in the leader's last answer."""
    follower = partition.follower
    return follower is not None and 0 <= follower.leader_high_watermark <= partition.log_end_offset
