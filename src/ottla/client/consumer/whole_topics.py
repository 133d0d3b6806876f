"""The topics of a consumer without a group: it reads all their partitions."""

import asyncio
import re
from collections.abc import Iterable

from ottla.base.ids import TopicPartition
from ottla.client.connection.cluster import Cluster
from ottla.client.consumer.fetcher import Fetcher


async def matching_topics(
    cluster: Cluster, topics: Iterable[str], pattern: re.Pattern[str] | None
) -> list[str]:
    """Return the topics, or the cluster's topics that match a pattern; never internal ones."""
    if pattern is None:
        return list(topics)
    names = await cluster.topic_names()
    return [name for name in names if pattern.fullmatch(name) and not name.startswith("__")]


class WholeTopics:
    """The subscription of a consumer without a group. `reset_to` is the start; None: raise.

    New partitions, and new topics that match a pattern, are read after the next metadata refresh.
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
        """Whether there are topics to read."""
        return bool(self.topics) or self._pattern is not None

    def subscribe(self, topics: Iterable[str], pattern: re.Pattern[str] | None) -> None:
        """Read these topics instead, from the next `settle` on."""
        self.topics = sorted(set(topics))
        self._pattern = pattern
        self._due_s = float("-inf")

    def claim(self, partition: TopicPartition) -> bool:
        """Start reading a partition of a subscribed topic now: its position is being set."""
        if partition.topic not in self.topics:
            return False
        self._fetcher.replace({*self._fetcher.states, partition})
        return True

    async def settle(self) -> None:
        """Start reading the partitions found since the last call. Raises UnknownTopic."""
        now_s = asyncio.get_running_loop().time()
        if now_s < self._due_s:
            return
        if self._cluster.is_stale:
            await self._cluster.refresh()
        wanted: set[TopicPartition] = set()
        for topic in await matching_topics(self._cluster, self.topics, self._pattern):
            view = await self._cluster.topic(topic)
            wanted |= {TopicPartition(topic, entry.index) for entry in view.partitions}
        # Partitions whose positions were set already are fetched first.
        self._fetcher.pump()
        new = wanted - self._fetcher.states.keys()
        self._fetcher.replace(wanted)
        for partition in new:
            self._fetcher.states[partition].forget_position(self.reset_to)
        self._due_s = now_s + self._cluster.options.metadata_max_age_ms / 1000
        self._fetcher.pump()
