"""Topics that a consumer without a group subscribes to: it reads all their partitions."""

import asyncio
import re
from collections.abc import Iterable

from ottla.base.ids import TopicPartition
from ottla.client.connection.cluster import Cluster
from ottla.client.consumer.fetcher import Fetcher


async def matching_topics(
    cluster: Cluster, topics: Iterable[str], pattern: re.Pattern[str] | None
) -> list[str]:
    """The topics, or those of the cluster that match a pattern; never internal ones."""
    if pattern is None:
        return list(topics)
    names = await cluster.topic_names()
    return [name for name in names if pattern.fullmatch(name) and not name.startswith("__")]


class WholeTopics:
    """Belongs to a consumer. `reset_to` is where to begin; None: raise.

    Partitions that are added, and new topics of a pattern, are read once the metadata is due again.
    """

    def __init__(self, cluster: Cluster, fetcher: Fetcher, reset_to: int | None) -> None:
        self.topics: list[str] = []
        self.reset_to = reset_to
        self._cluster = cluster
        self._fetcher = fetcher
        self._pattern: re.Pattern[str] | None = None
        self._due_s = float("inf")

    @property
    def is_subscribed(self) -> bool:
        """Whether there is anything to read."""
        return bool(self.topics) or self._pattern is not None

    def subscribe(self, topics: Iterable[str], pattern: re.Pattern[str] | None) -> None:
        """Read these instead, from the next `settle` on."""
        self.topics = sorted(set(topics))
        self._pattern = pattern
        self._due_s = float("-inf")

    def claim(self, partition: TopicPartition) -> bool:
        """Read a partition of a subscribed topic already, as its position is being set."""
        if partition.topic not in self.topics:
            return False
        self._fetcher.replace({*self._fetcher.states, partition})
        return True

    async def settle(self) -> None:
        """Read the partitions that have come since the last time. Raises UnknownTopic."""
        now_s = asyncio.get_running_loop().time()
        if now_s < self._due_s:
            return
        if self._cluster.is_stale:
            await self._cluster.refresh()
        wanted: set[TopicPartition] = set()
        for topic in await matching_topics(self._cluster, self.topics, self._pattern):
            view = await self._cluster.topic(topic)
            wanted |= {TopicPartition(topic, entry.index) for entry in view.partitions}
        # Those whose positions were set already come first.
        self._fetcher.pump()
        new = wanted - self._fetcher.states.keys()
        self._fetcher.replace(wanted)
        for partition in new:
            self._fetcher.states[partition].forget_position(self.reset_to)
        self._due_s = now_s + self._cluster.options.metadata_max_age_ms / 1000
        self._fetcher.pump()
