"""All fetchers of a broker: which one pulls which partition."""

from ottla.base.clock import Clock
from ottla.base.ids import BrokerId
from ottla.broker.partitions.partition import Partition
from ottla.broker.replication.fetcher import ReplicaFetcher
from ottla.broker.replication.follower_session import FetchLimits
from ottla.broker.replication.follower_shell import FollowerShell
from ottla.broker.replication.source_link import SourcePeers, Spawn


class Fetchers:
    """The fetchers of a broker: `num.replica.fetchers` for each broker that leads a partition."""

    def __init__(
        self,
        peers: SourcePeers,
        following: FollowerShell,
        limits: FetchLimits,
        clock: Clock,
        spawn: Spawn,
        *,
        per_source: int,
    ) -> None:
        self._peers = peers
        self._following = following
        self._limits = limits
        self._clock = clock
        self._spawn = spawn
        self._per_source = per_source
        self._fetchers: dict[tuple[BrokerId, int], ReplicaFetcher] = {}
        self._homes: dict[Partition, ReplicaFetcher] = {}

    def __len__(self) -> int:
        return len(self._fetchers)

    def add(self, partition: Partition) -> None:
        """Fetch a partition, for which a `follower` was just made."""
        assert partition.follower is not None
        number = (partition.topic_id.int + partition.index) % self._per_source
        place = (partition.follower.leader, number)
        fetcher = self._fetchers.get(place)
        if fetcher is None:
            fetcher = self._fetchers[place] = ReplicaFetcher(
                place[0], self._peers, self._following, self._limits, self._clock, self._spawn
            )
        self._homes[partition] = fetcher
        fetcher.add(partition)

    def remove(self, partition: Partition) -> None:
        """Stop fetching a partition."""
        fetcher = self._homes.pop(partition, None)
        if fetcher is not None:
            fetcher.remove(partition)

    def close(self) -> None:
        """Stop all fetchers."""
        for fetcher in self._fetchers.values():
            fetcher.close()
        self._fetchers.clear()
        self._homes.clear()
