"""The subscription of a consumer: as a member of a group, or to all partitions of topics."""

import asyncio
import logging
import re
from collections.abc import Callable, Iterable, Mapping

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.common.callbacks import call_listener
from ottla.client.common.errors import ClientError, CommitFailed
from ottla.client.connection.cluster import Cluster
from ottla.client.connection.coordinator import Coordinator, OffsetAndMetadata
from ottla.client.consumer.fetcher import Fetcher
from ottla.client.consumer.membership import Membership, Rebalancing
from ottla.client.consumer.options import ConsumerOptions, Listener, start_rule


async def matching_topics(
    cluster: Cluster, topics: Iterable[str], pattern: re.Pattern[str] | None
) -> list[str]:
    """Return the topics, or the cluster's topics that match a pattern; never internal ones."""
    if pattern is None:
        return list(topics)
    names = await cluster.topic_names()
    return [name for name in names if pattern.fullmatch(name) and not name.startswith("__")]


class WholeTopics:
    """The subscription of a consumer without a group. `reset_to` is its start, or None.

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
        """Start reading a partition whose position is being set; False if it is not subscribed."""
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
            wanted |= {TopicPartition(topic, entry.partition) for entry in view.partitions}
        # Partitions whose positions were set already are fetched first.
        self._fetcher.pump()
        new = wanted - self._fetcher.states.keys()
        self._fetcher.replace(wanted)
        for partition in new:
            self._fetcher.states[partition].forget_position(self.reset_to)
        self._due_s = now_s + self._cluster.options.metadata_max_age_ms / 1000
        self._fetcher.pump()


_logger = logging.getLogger(__name__)


class GroupSession:
    """Group membership and commits of one consumer. Without a subscription, it only commits."""

    def __init__(
        self,
        coordinator: Coordinator,
        options: ConsumerOptions,
        fetcher: Fetcher,
        wake: Callable[[], None],
        listeners: tuple[Listener | None, Listener | None, Listener | None],
    ) -> None:
        self.coordinator = coordinator
        self._options = options
        self._fetcher = fetcher
        self._wake = wake
        self._on_assigned, self._on_revoked, self._on_lost = listeners
        self.membership: Membership | None = None
        self.topics: list[str] = []
        self._pattern: re.Pattern[str] | None = None
        self._joining: asyncio.Task[None] | None = None
        self._commits: set[asyncio.Task[None]] = set()
        # Wakes the consumer for the next automatic commit; expired timers do not give their times.
        self._commit_timer: asyncio.TimerHandle | None = None
        self._commit_at_s = 0.0
        # The last committed offsets, so that no offset is committed twice.
        self._committed: dict[TopicPartition, int] = {}

    # -- membership

    def subscribe(self, topics: Iterable[str], pattern: re.Pattern[str] | None) -> None:
        """Join, or rejoin with other topics, at the next `settle`."""
        self.topics = sorted(set(topics))
        self._pattern = pattern
        if self.membership is None:
            rebalancing = Rebalancing(
                topics=self._current_topics,
                revoke=self._revoke,
                lose=self._lose,
                assign=self._assign,
                wake=self._wake,
            )
            self.membership = Membership(self.coordinator, self._options, rebalancing)
        self.membership.needs_join = True

    async def settle(self, timeout_s: float) -> bool:
        """Commit if that is due, and take part in a pending rebalance.

        Return False if the rebalance lasts longer than allowed.
        """
        if self._options["enable_auto_commit"]:
            self._commit_if_due()
        membership = self.membership
        if membership is None:
            return True
        membership.last_poll_s = asyncio.get_running_loop().time()
        if membership.failure is not None:
            raise membership.failure
        if not membership.needs_join and self._joining is None:
            return True
        if self._joining is None:
            self._joining = asyncio.ensure_future(membership.join())
        done, _ = await asyncio.wait([self._joining], timeout=max(0.0, timeout_s))
        if not done:
            return False
        task, self._joining = self._joining, None
        await task
        return True

    async def _current_topics(self) -> list[str]:
        return await matching_topics(self.coordinator.cluster, self.topics, self._pattern)

    async def _revoke(self, gone: set[TopicPartition]) -> None:
        if self._options["enable_auto_commit"]:
            await self._commit_leniently(self.uncommitted(gone))
        await call_listener("on_revoked", self._on_revoked, set(gone))
        self._drop(gone)

    async def _lose(self, gone: set[TopicPartition]) -> None:
        self._drop(gone)
        if self._on_lost is not None:
            await call_listener("on_lost", self._on_lost, set(gone))
        else:
            await call_listener("on_revoked", self._on_revoked, set(gone))

    def _drop(self, gone: set[TopicPartition]) -> None:
        self._fetcher.replace(self._fetcher.states.keys() - gone)
        for partition in gone:
            self._committed.pop(partition, None)

    async def _assign(self, owned: set[TopicPartition], new: set[TopicPartition]) -> None:
        self._fetcher.replace(owned)
        await self.start_from_committed(new)
        await call_listener("on_assigned", self._on_assigned, set(new))
        self._fetcher.pump()
        self._wake()

    async def start_from_committed(self, partitions: set[TopicPartition]) -> None:
        """Set partitions to their committed offsets, or else as auto_offset_reset says."""
        committed = await self.coordinator.committed(partitions) if partitions else {}
        for partition in partitions:
            state = self._fetcher.states.get(partition)
            if state is None or state.position >= 0:
                continue
            entry = committed.get(partition)
            if entry is not None:
                state.seek(entry.offset, entry.leader_epoch)
                self._committed[partition] = entry.offset
                continue
            reset_to = start_rule(self._options)
            state.forget_position(reset_to)
            if reset_to is None:
                error = ClientError(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"group {self.coordinator.group_id!r} has no committed offset for "
                    f"{partition}; commit one, seek, or set auto_offset_reset",
                )
                self._fetcher.fail(error, state)

    # -- commits

    def uncommitted(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the uncommitted positions of `partitions` or of all."""
        wanted = self._fetcher.states.keys() if partitions is None else partitions
        states = self._fetcher.states
        return {
            partition: OffsetAndMetadata(states[partition].position)
            for partition in wanted
            if partition in states
            and states[partition].position >= 0
            and states[partition].position != self._committed.get(partition)
        }

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit now. Raises CommitFailed if the group has rebalanced."""
        if not offsets:
            return
        member = self.membership
        await self.coordinator.commit(
            offsets,
            generation=member.generation if member is not None else -1,
            member_id=member.member_id if member is not None else "",
            instance_id=self._options["group_instance_id"] if member is not None else None,
        )
        for partition, entry in offsets.items():
            if partition in self._fetcher.states:
                self._committed[partition] = entry.offset

    def _commit_if_due(self) -> None:
        """Commit processed records in the background, once in each interval."""
        loop = asyncio.get_running_loop()
        if self._commit_timer is not None:
            if loop.time() < self._commit_at_s:
                return
            self._commit_timer.cancel()
            self._commit_in_background()
        interval_s = self._options["auto_commit_interval_ms"] / 1000
        self._commit_at_s = loop.time() + interval_s
        self._commit_timer = loop.call_later(interval_s, self._wake)

    def _commit_in_background(self) -> None:
        offsets = {} if self._commits else self.uncommitted()
        if offsets:
            task = asyncio.ensure_future(self._commit_leniently(offsets))
            self._commits.add(task)
            task.add_done_callback(self._commits.discard)

    async def _commit_leniently(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        try:
            await self.commit(offsets)
        except CommitFailed as error:
            _logger.warning("automatic commit: %s", error.message)
            if self.membership is not None and error.code is not ErrorCode.REBALANCE_IN_PROGRESS:
                self.membership.needs_join = True
        except OttlaError as error:
            # The next commit covers these offsets, or another member reads the records again.
            _logger.warning("automatic commit: %s", error.message)

    # -- the end

    async def close(self, *, commit: bool) -> None:
        """Commit processed records (if automatic commits are on and `commit`), then leave."""
        if self._commit_timer is not None:
            self._commit_timer.cancel()
        if self._joining is not None:
            self._joining.cancel()
            await asyncio.gather(self._joining, return_exceptions=True)
        if commit and self._options["enable_auto_commit"]:
            await self._commit_leniently(self.uncommitted())
        for task in list(self._commits):
            if not commit:
                task.cancel()
        await asyncio.gather(*self._commits, return_exceptions=True)
        if self.membership is not None:
            owned = self.membership.owned
            self.membership.owned = set()
            if owned:
                await call_listener("on_revoked", self._on_revoked, set(owned))
            await self.membership.close()
