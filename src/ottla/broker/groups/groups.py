"""All groups this broker coordinates, by the partitions of `__consumer_offsets` it leads."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from ottla.base.chance import new_uuid
from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BrokerSettings
from ottla.base.settings.assignors import consumer_assignors
from ottla.broker.coordinating import Shards
from ottla.broker.groups.answer import Answer, Gathering
from ottla.broker.groups.image_topics import ImageTopics
from ottla.broker.groups.shard import Command, GroupShard
from ottla.broker.partitions.partition import OnBehalf, Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.purgatory import Purgatory
from ottla.broker.topics.internal_topics import CONSUMER_OFFSETS
from ottla.broker.topics.topics import ImageHolder
from ottla.group.consumer.topics import Topics
from ottla.group.settings import GroupSettings
from ottla.group.story.flights import Flights
from ottla.wire.messages.share_group_describe import DescribedGroup

if TYPE_CHECKING:
    from ottla.broker.transactions.marker_writing import Outcome

_MINUTE_MS = 60_000


class Groups:
    """Runs commands on groups by the shards that hold them."""

    def __init__(
        self,
        settings: BrokerSettings,
        clock: Clock,
        purgatory: Purgatory,
        partitions: Partitions,
        holder: ImageHolder,
        *,
        new_uuid: Callable[[], UUID] = new_uuid,
    ) -> None:
        self._clock = clock
        self._purgatory = purgatory
        self._new_uuid = new_uuid
        self._holder = holder
        self._seen: ImageTopics | None = None
        self._settings = _group_settings(settings)
        self._commit_timeout_ms = settings.integer("offsets.commit.timeout.ms")
        self._load_bytes = settings.integer("offsets.load.buffer.size")
        self._check_interval_ms = settings.integer("offsets.retention.check.interval.ms")
        # What each rebalance was for, and what it cost.
        self.flights = Flights()
        self._shards = Shards(CONSUMER_OFFSETS, holder, partitions, purgatory, self._shard_of)

    def start(self) -> None:
        """Load what is on disk, and look for expired offsets from time to time.

        Returns at once; commands on groups that still load are refused until they are there.
        """
        self._shards.take_up()
        self._purgatory.schedule(self._check_interval_ms, self._expire)

    def on_role(self, partition: Partition) -> None:
        """A partition changed hands: its groups are loaded here, or given up."""
        self._shards.on_role(partition)

    def on_topics_deleted(self, deleted: frozenset[str]) -> None:
        """Forget the offsets committed in these topics."""
        if CONSUMER_OFFSETS in deleted:
            self._shards.give_up()
        for shard in self._shards:
            shard.upkeep(
                lambda coordinator, at: coordinator.forget_topics(
                    lambda topic, _partition: topic in deleted, at
                )
            )

    def close(self) -> None:
        """The broker stops: tell whoever waits to look for another coordinator."""
        self._shards.close()

    def partition_index(self, group_id: str) -> int | None:
        """Which partition of `__consumer_offsets` holds the group; None while there is no topic."""
        return self._shards.index_of(group_id)

    def run(
        self,
        group_id: str,
        answer: Answer,
        command: Command,
        producer: OnBehalf | None = None,
    ) -> None:
        """Carry out a command on a group; with `producer` as a part of its transaction.

        Raises OttlaError (NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS) before anything happens.
        """
        self._shards.find(group_id, "group").run(answer, command, producer)

    def try_run(self, group_id: str, answer: Answer, command: Command) -> None:
        """`run`, but an error is given as the answer."""
        try:
            self.run(group_id, answer, command)
        except OttlaError as error:
            answer.fail(error.code)

    def ask_each(
        self,
        request: RequestContext,
        group_ids: Sequence[str],
        command: Callable[[str], Command],
        failed: Callable[[str, ErrorCode], Any],
        response: Callable[[list[Any]], Any],
    ) -> None:
        """Run a command on each group, and answer with one `response` of all their answers.

        `failed` makes the part that tells of an error.
        """
        gathering = Gathering(request, len(group_ids), response)
        for index, group_id in enumerate(group_ids):
            self.try_run(
                group_id, gathering.part(index, partial(failed, group_id)), command(group_id)
            )

    def partition(self, group_id: str) -> Partition:
        """The partition that holds the group. Raises OttlaError (NOT_COORDINATOR)."""
        return self._shards.find(group_id, "group").partition

    def describe_share_group(self, group_id: str) -> DescribedGroup:
        """ShareGroupDescribe for one group of this broker. Raises OttlaError."""
        coordinator = self._shards.find(group_id, "group").loaded()
        return coordinator.share.described(group_id, self._topics())

    def end_transaction(self, index: int, outcome: "Outcome") -> int:
        """Append a transaction's marker to a partition of `__consumer_offsets`.

        Returns the offset below which all must be committed. Raises OttlaError.
        """
        return self._shards.at(index).end_transaction(outcome)

    def shards(self) -> Iterator[GroupShard]:
        """Every shard, also those that load."""
        return iter(self._shards)

    def _shard_of(self, partition: Partition) -> GroupShard:
        return GroupShard(
            partition,
            self._settings,
            self._clock,
            self._purgatory,
            self._new_uuid,
            self.flights,
            self._topics,
            commit_timeout_ms=self._commit_timeout_ms,
            load_bytes=self._load_bytes,
        )

    def _topics(self) -> Topics:
        """The topics there are now; the same object as long as the image is the same."""
        image = self._holder.image
        if self._seen is None or self._seen.token is not image.topics:
            self._seen = ImageTopics(image)
        return self._seen

    def _expire(self) -> None:
        if self._shards.closed:
            return
        for shard in self._shards:
            shard.upkeep(lambda coordinator, at: coordinator.expire_offsets(at))
        self._purgatory.schedule(self._check_interval_ms, self._expire)


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
