"""All groups this broker coordinates, by the partitions of `__consumer_offsets` it leads."""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from ottla.base.chance import new_uuid
from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BrokerSettings
from ottla.broker.groups.answer import Answer
from ottla.broker.groups.shard import Command, Shard
from ottla.broker.internal_topics import CONSUMER_OFFSETS
from ottla.broker.partition import OnBehalf, Partition
from ottla.broker.partitions import Partitions
from ottla.broker.purgatory import Purgatory
from ottla.broker.topics import ImageHolder
from ottla.group.placement import partition_of
from ottla.group.settings import GroupSettings
from ottla.metadata.image import ClusterImage

if TYPE_CHECKING:
    from ottla.broker.transactions.marker_writing import Outcome

_MINUTE_MS = 60_000
# How soon groups are waited for anew that could not be loaded yet.
_LOAD_AGAIN_MS = 200


class Groups:
    """Finds the shard of a group; takes shards up when their partitions are here.

    `__consumer_offsets` is made by whoever first looks for a coordinator; its shards follow when
    the first group needs them.
    Invariant: a shard that is used belongs to the partition that is served under its number.
    """

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
        self._partitions = partitions
        self._holder = holder
        self._new_uuid = new_uuid
        self._settings = _group_settings(settings)
        self._commit_timeout_ms = settings.integer("offsets.commit.timeout.ms")
        self._load_bytes = settings.integer("offsets.load.buffer.size")
        self._check_interval_ms = settings.integer("offsets.retention.check.interval.ms")
        self._shards: dict[int, Shard] = {}
        self._loads: dict[asyncio.Task[None], None] = {}
        self._closed = False

    def start(self) -> None:
        """Load what is on disk, and look for expired offsets from time to time.

        Returns at once; commands on groups that still load are refused until they are there.
        """
        self.take_up()
        self._purgatory.schedule(self._check_interval_ms, self._expire)

    def take_up(self) -> None:
        """Have a shard for every partition of `__consumer_offsets` that is led here."""
        for partition in self._partitions:
            self.on_role(partition)

    def on_role(self, partition: Partition) -> None:
        """A partition changed hands: its groups are loaded here, or given up."""
        if partition.topic != CONSUMER_OFFSETS or self._closed:
            return
        shard = self._shards.get(partition.index)
        if shard is not None and (
            partition.leader is None
            or shard.partition is not partition
            or shard.leader_epoch != partition.leader_epoch
        ):
            shard.close(ErrorCode.NOT_COORDINATOR)
            del self._shards[partition.index]
        if partition.leader is not None:
            self._shard_of(partition)

    def on_topics_deleted(self, deleted: frozenset[str]) -> None:
        """Forget the offsets committed in these topics."""
        if CONSUMER_OFFSETS in deleted:
            self._give_up()
        for shard in self._shards.values():
            shard.upkeep(
                lambda coordinator, at: coordinator.forget_topics(
                    lambda topic, _partition: topic in deleted, at
                )
            )

    def close(self) -> None:
        """The broker stops: tell whoever waits to look for another coordinator."""
        self._closed = True
        self._give_up()

    def partition_index(self, group_id: str) -> int | None:
        """Which partition of `__consumer_offsets` holds the group; None while there is no topic."""
        image: ClusterImage = self._holder.image
        topic = image.topic(CONSUMER_OFFSETS)
        return None if topic is None else partition_of(group_id, len(topic.partitions))

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
        self._shard(group_id).run(answer, command, producer)

    def try_run(self, group_id: str, answer: Answer, command: Command) -> None:
        """`run`, but an error is given as the answer."""
        try:
            self.run(group_id, answer, command)
        except OttlaError as error:
            answer.fail(error.code)

    def partition(self, group_id: str) -> Partition:
        """The partition that holds the group. Raises OttlaError (NOT_COORDINATOR)."""
        return self._shard(group_id).partition

    def end_transaction(self, index: int, outcome: "Outcome") -> int:
        """Append a transaction's marker to a partition of `__consumer_offsets`.

        Returns the offset below which all must be committed. Raises OttlaError.
        """
        partition = self._partitions.get(CONSUMER_OFFSETS, index)
        partition.check_led()
        return self._shard_of(partition).end_transaction(outcome)

    def shards(self) -> Iterator[Shard]:
        """Every shard, also those that load."""
        return iter(self._shards.values())

    def _give_up(self) -> None:
        for task in list(self._loads):
            task.cancel()
        for shard in self._shards.values():
            shard.close(ErrorCode.NOT_COORDINATOR)
        self._shards.clear()

    def _shard(self, group_id: str) -> Shard:
        index = self.partition_index(group_id)
        try:
            if index is not None:
                partition = self._partitions.get(CONSUMER_OFFSETS, index)
                partition.check_led()
                return self._shard_of(partition)
        except OttlaError:
            pass  # It is not led here.
        raise OttlaError(
            ErrorCode.NOT_COORDINATOR,
            f"this broker does not coordinate group {group_id!r}; find its coordinator anew",
        )

    def _shard_of(self, partition: Partition) -> Shard:
        shard = self._shards.get(partition.index)
        if shard is not None:
            if shard.partition is partition:
                return shard
            shard.close(ErrorCode.NOT_COORDINATOR)
        shard = Shard(
            partition,
            self._settings,
            self._clock,
            self._purgatory,
            self._new_uuid,
            commit_timeout_ms=self._commit_timeout_ms,
            load_bytes=self._load_bytes,
        )
        self._shards[partition.index] = shard
        if partition.log_end_offset == partition.log_start_offset:
            shard.load_nothing()
        else:
            # What it is loaded from must be committed first: another leader might not have it.
            end = partition.log_end_offset
            partition.on_high_watermark(end, partial(self._load, shard))
        return shard

    def _load(self, shard: Shard, code: ErrorCode) -> None:
        index = shard.partition.index
        if self._shards.get(index) is not shard:
            return
        if code is not ErrorCode.NONE:
            # In doubt for a moment, or with too few replicas: if it leads on, nobody else loads.
            del self._shards[index]
            self._purgatory.schedule(_LOAD_AGAIN_MS, self.take_up)
            return
        task = asyncio.get_running_loop().create_task(shard.load_or_log())
        self._loads[task] = None
        task.add_done_callback(lambda done: self._loads.pop(done, None))

    def _expire(self) -> None:
        if self._closed:
            return
        for shard in self._shards.values():
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
        consumer_assignors=settings.texts("group.consumer.assignors"),
        offsets_retention_ms=settings.integer("offsets.retention.minutes") * _MINUTE_MS,
    )
