"""The partitions this broker hosts: kept in step with the cluster image, found by name or by id."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from uuid import UUID

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.broker.flush import Flusher
from ottla.broker.partition import Partition
from ottla.metadata.image import ClusterImage, TopicImage
from ottla.storage.config import LogConfig
from ottla.storage.deletion import Deletion
from ottla.storage.errors import StorageError
from ottla.storage.log import Log
from ottla.storage.log_directories import LogDirectories, Wanted

_log = logging.getLogger(__name__)

_REMINDER_MS = 10_000

Key = tuple[str, int]
ConfigOf = Callable[[TopicImage], LogConfig]


class Partitions:
    """Every partition that this broker leads.

    Invariant: a partition is found by name if and only if it is found by its topic's id.
    """

    def __init__(
        self,
        broker_id: int,
        directories: LogDirectories,
        flusher: Flusher,
        clock: Clock,
        *,
        group_commit: bool,
        config_of: ConfigOf,
        on_deletion: Callable[[Deletion], None],
    ) -> None:
        self._broker_id = broker_id
        self._directories = directories
        self._flusher = flusher
        self._clock = clock
        self._group_commit = group_commit
        self._config_of = config_of
        self._on_deletion = on_deletion
        self._by_name: dict[Key, Partition] = {}
        self._by_id: dict[tuple[UUID, int], Partition] = {}
        # Partitions whose log could not be opened, and why.
        self._refused: dict[Key, StorageError] = {}
        self._applying = asyncio.Lock()
        self._silent_until_ms = 0

    def __iter__(self) -> Iterator[Partition]:
        return iter(list(self._by_name.values()))

    def __len__(self) -> int:
        return len(self._by_name)

    # Hot: once per partition of a request.
    def get(self, topic: str, index: int) -> Partition:
        """The partition of that name. Raises OttlaError, as Kafka does where there is none."""
        partition = self._by_name.get((topic, index))
        if partition is None:
            raise self._refused.get((topic, index)) or OttlaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {topic}-{index}"
            )
        return partition

    def get_by_id(self, topic_id: UUID, index: int) -> Partition:
        """The partition of the topic with that id. Raises OttlaError."""
        partition = self._by_id.get((topic_id, index))
        if partition is not None:
            return partition
        if (topic_id, 0) in self._by_id:
            raise OttlaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"topic {topic_id} has no partition {index}",
            )
        raise OttlaError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with id {topic_id}")

    async def apply(self, image: ClusterImage) -> None:
        """Open, configure and delete partitions until they are what `image` says.

        Returns when that is so: a topic may be answered as created after it. Opening touches
        the disk, and so happens in a thread.
        """
        async with self._applying:
            wanted = {
                (topic.name, index): topic
                for topic in image.topics.values()
                for index, partition in enumerate(topic.partitions)
                if partition.leader == self._broker_id
            }
            self._delete_missing(wanted)
            for key in [key for key in wanted if key in self._by_name]:
                self._update(self._by_name[key], wanted[key])
            missing = [key for key in wanted if key not in self._by_name]
            if missing:
                await self._open(missing, wanted)

    def update_configs(self, image: ClusterImage) -> None:
        """Carry changed settings into the logs at once."""
        for partition in self._by_name.values():
            topic = image.topics.get(partition.topic)
            if topic is not None:
                self._update(partition, topic)

    def on_storage_error(self, partition: Partition, error: StorageError) -> None:
        """A log could not be written or read: take offline what the error concerns."""
        now_ms = self._clock.monotonic_ms()
        if error.stops_log or now_ms >= self._silent_until_ms:
            # A full disk refuses every batch, and is told now and then.
            self._silent_until_ms = now_ms + _REMINDER_MS
            _log.error("%s", error.message)
        for offline in self._directories.fail(partition.topic_partition, error):
            found = self._by_name.get(offline)
            if found is not None:
                found.fail(error.message)

    def high_watermarks(self) -> dict[TopicPartition, int]:
        """For the checkpoint."""
        return {
            partition.topic_partition: partition.high_watermark
            for partition in self._by_name.values()
        }

    def close(self) -> None:
        """Serve no more; whoever waits for a partition is told. The logs stay open."""
        for partition in self:
            partition.fail("the broker stops", ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._by_name.clear()
        self._by_id.clear()

    def _delete_missing(self, wanted: dict[Key, TopicImage]) -> None:
        for key, partition in list(self._by_name.items()):
            topic = wanted.get(key)
            if topic is not None and topic.id == partition.topic_id:
                continue
            del self._by_name[key]
            del self._by_id[partition.topic_id, partition.index]
            partition.fail(
                f"{partition.topic_partition} was deleted", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
            self._on_deletion(self._directories.delete(partition.topic_partition))

    async def _open(self, missing: list[Key], topics: dict[Key, TopicImage]) -> None:
        configs = {topic.name: self._config_of(topic) for topic in topics.values()}
        wanted = [Wanted(TopicPartition(*k), topics[k].id, configs[k[0]]) for k in missing]

        def open_logs() -> dict[TopicPartition, Log | StorageError]:
            found = self._directories.open_all(wanted, now_ms=self._clock.now_ms())
            if self._group_commit:
                # What recovery found may not be on the disk yet; what is shown must be.
                for topic_partition, log in found.items():
                    if isinstance(log, Log) and log.recovery_point < log.log_end_offset:
                        try:
                            log.flush()
                        except StorageError as error:
                            found[topic_partition] = error
            return found

        if self._directories.in_memory:
            found = open_logs()
        else:
            found = await asyncio.get_running_loop().run_in_executor(None, open_logs)
        for key in missing:
            log = found[TopicPartition(*key)]
            if isinstance(log, Log):
                self._add(key, topics[key], log)
            else:
                _log.error("partition %s-%d stays offline: %s", *key, log.message)
                self._refused[key] = log

    def _add(self, key: Key, topic: TopicImage, log: Log) -> None:
        partition = Partition(
            TopicPartition(*key),
            topic.id,
            log,
            topic.partitions[key[1]].leader_epoch,
            self._flusher,
            self._clock,
            group_commit=self._group_commit,
            on_storage_error=self.on_storage_error,
        )
        self._refused.pop(key, None)
        self._by_name[key] = partition
        self._by_id[topic.id, key[1]] = partition

    def _update(self, partition: Partition, topic: TopicImage) -> None:
        partition.leader_epoch = topic.partitions[partition.index].leader_epoch
        config = self._config_of(topic)
        if config != partition.config:
            partition.log.update_config(config)
