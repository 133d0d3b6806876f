"""The group coordinator: the partitions of `__consumer_offsets` that this broker leads."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import methodcaller
from typing import Any, NamedTuple
from uuid import UUID

from ottla.base.chance import new_uuid
from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import NO_TOPIC_ID, TopicPartition
from ottla.base.settings import BrokerSettings
from ottla.base.settings.tables.validators import consumer_assignors
from ottla.broker.coordinators import Coordinators, ShardsStatus
from ottla.broker.groups.answer import GroupAnswer, PartedResponse
from ottla.broker.groups.shard import Command, GroupShard
from ottla.broker.groups.topics import ImageTopics
from ottla.broker.partitions.partition import OnBehalf, Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.part import BrokerPart
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.signal import Signal
from ottla.broker.runtime.view import ClusterView
from ottla.broker.topics.internal_topics import CONSUMER_OFFSETS
from ottla.group.coordinator.coordinator import GroupCoordinator
from ottla.group.coordinator.flights import Flights
from ottla.group.coordinator.room import GroupRoom
from ottla.group.model.share_group import ShareGroup
from ottla.group.model.turn import GroupDecision, Moment
from ottla.group.records.stored import CommittedOffset
from ottla.group.values.settings import GroupSettings
from ottla.group.values.topics import TopicsView
from ottla.transaction.transaction import TransactionOutcome
from ottla.wire.messages.consumer_groups import DescribedShareGroup

_MINUTE_MS = 60_000


class GroupStatus(NamedTuple):
    """A group that this broker coordinates. A share group commits no offsets."""

    group_id: str
    # The name of its state as in ListGroups, such as Stable.
    state: str
    members: int
    # The committed offset of each partition, and the time of day of the commit in milliseconds.
    offsets: tuple[tuple[TopicPartition, int, int], ...]


@dataclass(frozen=True, slots=True)
class GroupsStatus:
    """The number of groups that this broker coordinates, and of their shards."""

    groups: int
    shards: ShardsStatus
    each: tuple[GroupStatus, ...]


class Groups(Coordinators[GroupShard], BrokerPart):
    """Runs commands in the shard of their group."""

    def __init__(
        self,
        view: ClusterView,
        runtime: Runtime,
        settings: BrokerSettings,
        partitions: Partitions,
        *,
        new_uuid: Callable[[], UUID] = new_uuid,
    ) -> None:
        super().__init__(CONSUMER_OFFSETS, view, runtime, partitions)
        self._new_uuid = new_uuid
        self._seen: ImageTopics | None = None
        self._settings = _group_settings(settings)
        self._broker_settings = settings
        self._room = GroupRoom(self._has)
        self._commit_timeout_ms = settings.integer("offsets.commit.timeout.ms")
        self._load_bytes = settings.integer("offsets.load.buffer.size")
        self._check_interval_ms = settings.integer("offsets.retention.check.interval.ms")
        # The cause of each recent rebalance, and how long it took.
        self.flights = Flights()
        # Emitted after each decision about a group was applied; its records may not be committed.
        self.decided: Signal[[GroupDecision]] = Signal()

    def begin(self) -> None:
        """Start loading the groups from disk, and expire offsets at intervals.

        Returns at once; commands on groups that are still loading fail.
        """
        self.take_up()
        self.every(self._check_interval_ms, methodcaller("upkeep", _expire_offsets))

    def on_topics_deleted(self, deleted: Mapping[str, UUID]) -> None:
        """Drop the offsets committed in deleted topics; `deleted` has their ids by name.

        Offsets of topics that may be restored stay, but are not shown.
        """
        if CONSUMER_OFFSETS in deleted:
            self.give_up()
        keeps = self._broker_settings.integer("delete.topic.trash.ms") > 0

        def is_gone(name: TopicPartition, committed: CommittedOffset) -> bool:
            known = NO_TOPIC_ID if keeps else deleted.get(name.topic)
            return name.topic in deleted and committed.topic_id in (NO_TOPIC_ID, known)

        for shard in self.shards():
            shard.upkeep(
                lambda coordinator, at: coordinator.offsets.forget_topics(is_gone, deleted, at)
            )

    def forget_topic(self, topic_id: UUID) -> None:
        """Drop the offsets committed in a deleted topic that cannot be restored any more."""
        for shard in self.shards():
            shard.upkeep(
                lambda coordinator, at: coordinator.offsets.forget_topics(
                    lambda _name, committed: committed.topic_id == topic_id, (), at
                )
            )

    async def stop(self) -> None:
        """Answer waiting requests with NOT_COORDINATOR."""
        self.close()

    def status(self) -> GroupsStatus:
        return GroupsStatus(self._count(), self.shards_status(), tuple(self._each()))

    def run(
        self,
        group_id: str,
        answer: GroupAnswer,
        command: Command,
        producer: OnBehalf | None = None,
    ) -> None:
        """Run a command on a group; with `producer` its records belong to the transaction.

        Raises OttlaError (NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS) before it runs anything.
        """
        self.find(group_id, "group").run(answer, command, producer)

    def admit(self, request: RequestContext, group_id: str) -> None:
        """Raise OttlaError if a request would create a group and there are too many groups.

        The codes are GROUP_MAX_SIZE_REACHED and INVALID_GROUP_ID, or the codes of `run`.
        """
        if self.find(group_id, "group").loaded().registry.knows(group_id):
            return
        connection = request.connection
        owner = connection.owner
        now_ms = self._runtime.clock.monotonic_ms()
        try:
            self._room.begin(
                owner,
                group_id,
                self._count(),
                self._broker_settings.integer("group.max.count"),
                now_ms,
            )
        except OttlaError as error:
            text = error.message
            connection.refusals.log((owner, "groups", error.code), lambda: f"group refused: {text}")
            raise

    def _count(self) -> int:
        return sum(len(shard.coordinator.registry) for shard in self.shards() if shard.coordinator)

    def _each(self) -> Iterator[GroupStatus]:
        for shard in self.shards():
            if shard.coordinator is None:
                continue
            registry = shard.coordinator.registry
            for group in [*registry.all(), *registry.share.groups.values()]:
                offsets = () if isinstance(group, ShareGroup) else group.offsets.items()
                yield GroupStatus(
                    group.group_id,
                    str(group.state),
                    len(group.members),
                    tuple((name, at.offset, at.commit_timestamp_ms) for name, at in offsets),
                )

    def _has(self, group_id: str) -> bool:
        try:
            return self.find(group_id, "group").loaded().registry.knows(group_id)
        except OttlaError:
            return False

    def try_run(self, group_id: str, answer: GroupAnswer, command: Command) -> None:
        """Do as `run`, but give errors as the answer."""
        try:
            self.run(group_id, answer, command)
        except OttlaError as error:
            answer.fail(error.code)

    async def run_and_wait(self, request: RequestContext, group_id: str, command: Command) -> Any:
        """Do as `run`, wait for the answer and return it. Raises OttlaError."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def give(message: Any) -> None:
            if future.done():
                return
            if isinstance(message, OttlaError):
                future.set_exception(message)
            else:
                future.set_result(message)

        def failed(code: ErrorCode) -> OttlaError:
            return OttlaError(code, "the group's coordinator gave up; ask again")

        self.run(group_id, GroupAnswer(request, give, failed), command)
        return await future

    def run_each(
        self,
        request: RequestContext,
        group_ids: Sequence[str],
        command: Callable[[str], Command],
        failed: Callable[[str, ErrorCode], Any],
        response: Callable[[list[Any]], Any],
    ) -> None:
        """Run a command on each group, and reply with one response built from all answers.

        `failed` converts the error of a group to its part of the response.
        """
        parted = PartedResponse(request, len(group_ids), response)
        for index, group_id in enumerate(group_ids):
            answer = parted.part(index, partial(failed, group_id))
            self.try_run(group_id, answer, command(group_id))

    def partition(self, group_id: str) -> Partition:
        """Return the partition that has the group. Raises OttlaError (NOT_COORDINATOR)."""
        return self.find(group_id, "group").partition

    def describe_share_group(self, group_id: str) -> DescribedShareGroup:
        """Describe a share group that this broker coordinates. Raises OttlaError."""
        coordinator = self.find(group_id, "group").loaded()
        return coordinator.describe_share_group(group_id, self._topics())

    def end_transaction(self, index: int, outcome: TransactionOutcome) -> int:
        """Append a transaction's marker to a partition of `__consumer_offsets`.

        Returns the end offset that must be committed. Raises OttlaError.
        """
        return self.at(index).end_transaction(outcome)

    def new_shard(self, partition: Partition) -> GroupShard:
        return GroupShard(
            partition,
            self._settings,
            self._runtime.clock,
            self._runtime.purgatory,
            self._new_uuid,
            self.flights,
            self._topics,
            self.decided,
            commit_timeout_ms=self._commit_timeout_ms,
            load_bytes=self._load_bytes,
        )

    def _topics(self) -> TopicsView:
        """Return the current topics; the same object while the image's topics are unchanged."""
        image = self._view.image
        if self._seen is None or self._seen.token is not image.topics:
            self._seen = ImageTopics(image)
        return self._seen


def _expire_offsets(coordinator: GroupCoordinator, at: Moment) -> GroupDecision:
    return coordinator.offsets.expire_offsets(at)


def _group_settings(settings: BrokerSettings) -> GroupSettings:
    return GroupSettings(
        min_session_timeout_ms=settings.integer("group.min.session.timeout.ms"),
        max_session_timeout_ms=settings.integer("group.max.session.timeout.ms"),
        initial_rebalance_delay_ms=settings.integer("group.initial.rebalance.delay.ms"),
        max_size=settings.integer("group.max.size"),
        offset_metadata_max=settings.integer("offset.metadata.max.bytes"),
        consumer_session_timeout_ms=settings.integer("group.consumer.session.timeout.ms"),
        consumer_heartbeat_interval_ms=settings.integer("group.consumer.heartbeat.interval.ms"),
        consumer_max_size=settings.integer("group.consumer.max.size"),
        consumer_assignors=consumer_assignors(settings.texts("group.consumer.assignors")),
        migration_policy=settings.text("group.consumer.migration.policy").lower(),
        share_session_timeout_ms=settings.integer("group.share.session.timeout.ms"),
        share_heartbeat_interval_ms=settings.integer("group.share.heartbeat.interval.ms"),
        share_max_size=settings.integer("group.share.max.size"),
        offsets_retention_ms=settings.integer("offsets.retention.minutes") * _MINUTE_MS,
    )
