"""The replicas on this broker: opened, given roles, found by name or by id."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicId, TopicPartition
from ottla.base.log_lines import Seldom
from ottla.broker.partitions.flush import Flusher
from ottla.broker.partitions.partition import Partition, PartitionRoles
from ottla.broker.partitions.removals import Departures, Removals
from ottla.broker.runtime.signal import Signal
from ottla.broker.runtime.view import ClusterView
from ottla.metadata.image import (
    INTERNAL_TOPICS,
    NO_LEADER,
    ClusterImage,
    PartitionImage,
    TopicImage,
)
from ottla.network.connection import Connection
from ottla.replica.transition import Transition
from ottla.storage.directory import salvage
from ottla.storage.directory.log_directories import LogDirectories
from ottla.storage.directory.placement import Wanted
from ottla.storage.disk.errors import DirectoryFailed, LogCorrupt, StorageError
from ottla.storage.log.log import Log
from ottla.storage.segment.config import LONG_MAX, LogConfig
from ottla.wire.parts import Records

_log = logging.getLogger(__name__)

_REMINDER_MS = 10_000
_KEPT = (
    " The partition stays in use, for its coordinator has no other copy; what can be read of it "
    "is salvaged when this broker is started next."
)
# Partitions changed in one turn of the loop.
_SLICE = 50

# The roles that orders give, as they are logged.
_TAKEN = {
    Transition.LEAD: "leading",
    Transition.FOLLOW: "following in",
    Transition.WAIT: "without a leader in",
    Transition.LEAVE: "no replica any more in",
}
# Partitions that a log line names.
_NAMED = 5

Key = tuple[str, int]
# Called with the connection, the client id, the partition, the fetch offset, and whole batches.
OnSent = Callable[[Connection, str | None, Partition, int, Records], None]
ConfigOf = Callable[[TopicImage], LogConfig]


class StopOrder(NamedTuple):
    """The controller's order to stop a replica, and with `delete` to delete its log.

    An order with a leader epoch below the replica's own is outdated. The epochs -1 and -2 disable
    this check (KIP-570).
    """

    topic: str
    partition_index: int
    leader_epoch: int
    delete: bool
    # The id of a deleted topic, whose log goes to the trash; None for other orders.
    topic_id: UUID | None = None


class Partitions:
    """All replicas on this broker, leaders and followers.

    Invariant: a partition is found by name if and only if it is found by its topic's id.
    """

    def __init__(
        self,
        view: ClusterView,
        directories: LogDirectories,
        flusher: Flusher,
        clock: Clock,
        roles: PartitionRoles,
        *,
        group_commit: bool,
        config_of: ConfigOf,
        removals: Removals,
        keeps_deleted: Callable[[], bool],
    ) -> None:
        """Create the object. `keeps_deleted` says whether deleted topics go to the trash."""
        self._directories = directories
        self._flusher = flusher
        self._clock = clock
        self._roles = roles
        self._view = view
        self._group_commit = group_commit
        self._config_of = config_of
        self._keeps_deleted = keeps_deleted
        self._departures = Departures(directories, removals)
        self._by_name: dict[Key, Partition] = {}
        self._by_id: dict[tuple[UUID, int], Partition] = {}
        # Partitions whose log could not be opened, with the reason.
        self._refused: dict[Key, StorageError] = {}
        # The topics' own settings that were last applied to the logs.
        self._configs: dict[str, Mapping[str, str]] = {}
        # The ids of all topics in the last applied image.
        self._topic_ids: frozenset[TopicId] = frozenset()
        # Whether a log was ever configured to be flushed after a time.
        self.any_flush_by_time = False
        # Held while replicas are opened, deleted or moved.
        self.changing = asyncio.Lock()
        # Emitted after replicas went offline.
        self.on_failed: Signal[[]] = Signal()
        # Called when records are sent to a client; the brokers of tests set it.
        self.on_sent: OnSent | None = None
        self._reminders = Seldom(_REMINDER_MS)

    def __iter__(self) -> Iterator[Partition]:
        return iter(list(self._by_name.values()))

    def __len__(self) -> int:
        return len(self._by_name)

    # Hot: once per partition of a request.
    def get(self, topic: str, index: int) -> Partition:
        """Return a partition. Raises OttlaError with Kafka's code if this broker lacks it."""
        partition = self._by_name.get((topic, index))
        if partition is None:
            raise self._refused.get((topic, index)) or self._missing(topic, index)
        return partition

    def get_by_id(self, topic_id: UUID, index: int) -> Partition:
        """Return the partition of the topic with this id. Raises OttlaError."""
        partition = self._by_id.get((topic_id, index))
        if partition is not None:
            return partition
        topic = self._view.image.topic_by_id(TopicId(topic_id))
        if topic is None:
            raise OttlaError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with id {topic_id}")
        return self.get(topic.name, index)

    def topic_name(self, topic_id: UUID) -> str | None:
        """Return the name of the topic with this id, even if it has no replica on this broker."""
        topic = self._view.image.topic_by_id(TopicId(topic_id))
        return None if topic is None else topic.name

    def exists(self, topic: str, index: int) -> bool:
        """Whether the partition exists on any broker of the cluster."""
        return self._view.image.partition(topic, index) is not None

    def _missing(self, topic: str, index: int) -> OttlaError:
        if self.exists(topic, index):
            return OttlaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{topic}-{index} is not on this broker"
            )
        return OttlaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {topic}-{index}"
        )

    def find(self, topic: str, index: int) -> Partition | None:
        """Return a partition; None if this broker lacks it."""
        return self._by_name.get((topic, index))

    async def apply(self, image: ClusterImage) -> None:
        """Delete and configure partitions to match `image`; only `order` opens new ones."""
        async with self.changing:
            await self._delete_gone(image)
            for name in {topic for topic, _ in self._by_name}:
                topic = image.topics.get(name)
                if topic is not None and topic.configs is not self._configs.get(name):
                    self._configure(topic)
            # No order may come to a damaged replica that could not be given up before.
            states = [damaged for damaged in self._damaged(image) if self._can_give_up(*damaged)]
            if states:
                await self._take(states)

    def _damaged(self, image: ClusterImage) -> Iterator[tuple[TopicImage, int, PartitionImage]]:
        """Yield the partitions whose logs here are damaged, with their states in `image`."""
        for directory in self._directories.online:
            for (name, index), error in directory.refused.items():
                topic, state = image.topics.get(name), image.partition(name, index)
                if isinstance(error, LogCorrupt) and topic is not None and state is not None:
                    yield topic, index, state

    async def order(
        self, states: Iterable[tuple[TopicImage, int, PartitionImage]]
    ) -> dict[Key, OttlaError]:
        """Open partitions that are not open yet, and give them roles; return the errors.

        A topic may be reported as created only after this has returned. A state older than the
        current one changes nothing.
        """
        async with self.changing:
            return await self._take(states)

    async def _take(
        self, states: Iterable[tuple[TopicImage, int, PartitionImage]]
    ) -> dict[Key, OttlaError]:
        """Open missing partitions, which waits for the disk; then give each its role."""
        states = list(states)
        await self._open_missing((topic, index) for topic, index, _ in states)
        given_up = [
            (topic, index) for topic, index, state in states if self._give_up(topic, index, state)
        ]
        await self._carry_out_departures()
        await self._open_missing(given_up)
        failed: dict[Key, OttlaError] = {}
        taken: dict[Transition, list[Partition]] = {}
        for number, (topic, index, state) in enumerate(states, 1):
            if number % _SLICE == 0:
                await asyncio.sleep(0)
            key = (topic.name, index)
            partition = self._by_name.get(key)
            if partition is None:
                failed[key] = self._refused.get(key) or self._missing(*key)
            elif partition.topic_id is not topic.id and partition.topic_id != topic.id:
                failed[key] = OttlaError(
                    ErrorCode.INCONSISTENT_TOPIC_ID,
                    f"{topic.name}-{index} is here for topic {partition.topic_id}",
                )
            elif partition.failure is not None:
                failed[key] = StorageError(partition.failure)
            else:
                taken.setdefault(self._roles.become(partition, state), []).append(partition)
        for transition, what in _TAKEN.items():
            if transition in taken:
                _log.info("%s", _named(what, taken[transition]))
        return failed

    def _can_give_up(self, topic: TopicImage, index: int, state: PartitionImage) -> bool:
        """Return whether a replica's log is damaged, and deleting it loses nothing.

        Another broker must lead, and this one must be in neither the ISR nor the ELR.
        """
        own = self._roles.registration.broker_id
        if own in state.isr or state.leader in (NO_LEADER, own) or own not in state.replicas:
            return False
        if own in state.elr or own in state.last_known_elr:
            return False
        name, partition = TopicPartition(topic.name, index), self._by_name.get((topic.name, index))
        home = self._directories.home(name)
        damaged = home is not None and isinstance(home.refused.get(name), LogCorrupt)
        return damaged and (partition is None or partition.topic_id == topic.id)

    def _give_up(self, topic: TopicImage, index: int, state: PartitionImage) -> bool:
        """Delete the damaged log of a replica if that loses nothing; return whether it did.

        The log is then copied from the leader.
        """
        if not self._can_give_up(topic, index, state):
            return False
        key = (topic.name, index)
        name, partition = TopicPartition(*key), self._by_name.get(key)
        _log.warning(
            "%s: the damaged replica is deleted and copied from broker %d", name, state.leader
        )
        if partition is not None:
            self._delete(key, partition)
        else:
            self._refused.pop(key, None)
            self._departures.add(name)
        return True

    async def _carry_out_departures(self) -> dict[Key, OttlaError]:
        failed = await self._departures.carry_out()
        for partition, error in failed.items():
            _log.error("the log of %s stays where it is: %s", partition, error.message)
        return {(name.topic, name.partition): error for name, error in failed.items()}

    async def stop(self, orders: Sequence[StopOrder]) -> dict[Key, OttlaError]:
        """Stop replicas, and delete their logs if ordered; return the errors."""
        failed: dict[Key, OttlaError] = {}
        async with self.changing:
            self._departures.announce(
                TopicPartition(order.topic, order.partition_index)
                for order in orders
                if order.delete and not self._is_stale(order)
            )
            for start in range(0, len(orders), _SLICE):
                for order in orders[start : start + _SLICE]:
                    try:
                        self._stop(order)
                    except OttlaError as error:
                        failed[order.topic, order.partition_index] = error
                failed |= await self._carry_out_departures()
                await asyncio.sleep(0)
        return failed

    def _is_stale(self, order: StopOrder) -> bool:
        """Whether the order has an earlier leader epoch than the partition."""
        partition = self._by_name.get((order.topic, order.partition_index))
        return partition is not None and 0 <= order.leader_epoch < partition.leader_epoch

    def _stop(self, order: StopOrder) -> None:
        key = (order.topic, order.partition_index)
        partition = self._by_name.get(key)
        if partition is None:
            known = TopicPartition(*key)
            if order.delete and self._directories.home(known) is not None:
                self._refused.pop(key, None)
                self._departures.add(known, self._kept(order.topic, order.topic_id))
            return
        if self._is_stale(order):
            raise OttlaError(
                ErrorCode.FENCED_LEADER_EPOCH,
                f"{partition.topic_partition} is in leader epoch {partition.leader_epoch}",
            )
        if order.delete:
            self._delete(key, partition, self._kept(order.topic, order.topic_id))
        else:
            self._roles.give_up(partition, f"{partition.topic_partition} was stopped")
            partition.wake_all()
            self._roles.on_role.emit(partition)

    def update_configs(self, image: ClusterImage) -> None:
        """Apply changed settings to the logs at once."""
        for name in {topic for topic, _ in self._by_name}:
            topic = image.topics.get(name)
            if topic is not None:
                self._configure(topic)

    def on_storage_error(self, partition: Partition, error: StorageError) -> None:
        """Take the replicas offline that are affected by a failed read or write."""
        if self._by_name.get((partition.topic, partition.index)) is not partition:
            return  # The partition was deleted meanwhile, and may have been created again.
        now_ms = self._clock.monotonic_ms()
        is_kept = self._keep_damaged(partition, error)
        # A full disk makes every append fail, so this is logged at intervals.
        is_due = self._reminders.admit("storage", now_ms) is not None
        if (error.stops_log and not is_kept) or is_due:
            _log.error("%s%s", error.message, _KEPT if is_kept else "")
        if is_kept:
            return
        failed = self._directories.fail(partition.topic_partition, error)
        for offline in failed:
            found = self._by_name.get(offline)
            if found is not None:
                found.fail(error.message)
        if failed:
            self.on_failed.emit()

    def high_watermarks(self) -> dict[TopicPartition, int]:
        """Return the high watermarks of all partitions, for the checkpoint."""
        return {
            partition.topic_partition: partition.high_watermark
            for partition in self._by_name.values()
        }

    def close(self) -> None:
        """Stop serving; answer all waiting requests. The logs stay open."""
        for partition in self:
            partition.fail("the broker stops", ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._by_name.clear()
        self._by_id.clear()

    async def _delete_gone(self, image: ClusterImage) -> None:
        """Delete the partitions of topics that were in the last image and are not in this one.

        Partitions of topics that were never in an image are kept, because LeaderAndIsr may arrive
        before UpdateMetadata.
        """
        gone = self._topic_ids.difference(image.topics_by_id)
        self._topic_ids = frozenset(image.topics_by_id)
        if not gone:
            return
        found = [(key, one) for key, one in self._by_name.items() if one.topic_id in gone]
        self._departures.announce(partition.topic_partition for _, partition in found)
        for start in range(0, len(found), _SLICE):
            for key, partition in found[start : start + _SLICE]:
                self._delete(key, partition, self._kept(partition.topic, partition.topic_id))
            await self._carry_out_departures()

    def _kept(self, topic: str, topic_id: UUID | None) -> UUID | None:
        """Return the id of a deleted topic if its logs go to the trash, else None."""
        return topic_id if self._keeps_deleted() and topic not in INTERNAL_TOPICS else None

    def kept_bytes(self, order: StopOrder) -> int:
        """Return the size of a deleted topic's log in the trash; -1 if it is not there."""
        if order.topic_id is None:
            return -1
        kept = self._directories.kept(order.topic_id, order.partition_index)
        return -1 if kept is None else kept.size_bytes

    def _delete(self, key: Key, partition: Partition, keep: UUID | None = None) -> None:
        del self._by_name[key]
        del self._by_id[partition.topic_id, partition.index]
        self._configs.pop(key[0], None)
        partition.fail(
            f"{partition.topic_partition} was deleted", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
        self._departures.add(partition.topic_partition, keep)

    async def _open_missing(self, replicas: Iterable[tuple[TopicImage, int]]) -> None:
        topics = {
            (topic.name, index): topic
            for topic, index in replicas
            if (topic.name, index) not in self._by_name
        }
        if not topics:
            return
        # Derived once per topic, because this takes longer than the work per partition.
        by_name = {topic.name: topic for topic in topics.values()}
        configs = {name: self._derive_config(topic) for name, topic in by_name.items()}
        wanted = [
            Wanted(TopicPartition(*k), t.id, configs[k[0]], salvages=self._is_last_resort(t, k[1]))
            for k, t in topics.items()
        ]

        def open_logs() -> dict[TopicPartition, Log | StorageError]:
            found = self._directories.open_all(wanted, now_ms=self._clock.now_ms())
            if self._group_commit:
                # Recovered records may not be on the disk yet, but records in use must be.
                for topic_partition, log in found.items():
                    if isinstance(log, Log) and log.flush_state.recovery_point < log.log_end_offset:
                        try:
                            log.flush()
                        except StorageError as error:
                            found[topic_partition] = error
            return found

        if self._directories.in_memory:
            found = open_logs()
        else:
            found = await asyncio.get_running_loop().run_in_executor(None, open_logs)
        for number, (key, topic) in enumerate(topics.items(), 1):
            if number % _SLICE == 0:
                await asyncio.sleep(0)
            log = found[TopicPartition(*key)]
            if isinstance(log, Log):
                self._add(key, topic, log)
            else:
                _log.error("partition %s-%d stays offline: %s", *key, log.message)
                self._refused[key] = log
        if any(isinstance(log, DirectoryFailed) for log in found.values()):
            self._fail_with_directories()

    def _fail_with_directories(self) -> None:
        """Take all replicas of a directory offline, because one log in it could not be opened."""
        offline = [one for one in self._by_name.values() if one.log.offline and one.failure is None]
        for partition in offline:
            partition.fail(partition.log.offline)
        if offline:
            self.on_failed.emit()

    def _add(self, key: Key, topic: TopicImage, log: Log) -> None:
        topic_partition = TopicPartition(*key)
        partition = Partition(
            topic_partition,
            topic.id,
            log,
            self._flusher,
            self._clock,
            self._roles,
            high_watermark=self._directories.high_watermark(topic_partition),
            group_commit=self._group_commit,
            on_storage_error=self.on_storage_error,
        )
        for note in log.recovery.notes:
            _log.warning("%s was recovered: %s", topic_partition, note)
        for note in log.recovery.salvaged:
            _log.error("%s is salvaged: %s", topic_partition, note)
        self._refused.pop(key, None)
        self._by_name[key] = partition
        self._by_id[topic.id, key[1]] = partition

    def _is_last_resort(self, topic: TopicImage | None, index: int) -> bool:
        """Whether this is the only replica of an internal topic's partition."""
        if topic is None or not topic.is_internal or index >= len(topic.partitions):
            return False
        return topic.partitions[index].replicas == (self._roles.registration.broker_id,)

    def _keep_damaged(self, partition: Partition, error: StorageError) -> bool:
        """Keep using a damaged log if it is the last resort, and salvage it at the next start.

        Return whether it is kept.
        """
        topic = self._view.image.topic(partition.topic)
        if not isinstance(error, LogCorrupt) or not self._is_last_resort(topic, partition.index):
            return False
        try:
            salvage.mark(partition.log.filesystem, partition.log.folder)
        except OSError:
            return False
        return True

    def _derive_config(self, topic: TopicImage) -> LogConfig:
        config = self._config_of(topic)
        self.any_flush_by_time |= config.flush_ms < LONG_MAX
        return config

    def _configure(self, topic: TopicImage) -> None:
        config = self._derive_config(topic)
        self._configs[topic.name] = topic.configs
        for index in range(len(topic.partitions)):
            partition = self._by_name.get((topic.name, index))
            if partition is not None and config != partition.config:
                partition.log.update_config(config)
                self._roles.on_config(partition)


def _named(what: str, partitions: Sequence[Partition]) -> str:
    """Return a log line for partitions that took a role; the first few are named."""
    described = [
        f"{one.topic_partition} in epoch {one.leader_epoch} from offset {one.log_end_offset} on"
        for one in partitions[:_NAMED]
    ]
    rest = ", ..." if len(partitions) > _NAMED else ""
    return f"{what} {len(partitions)} partition(s): {', '.join(described)}{rest}"
