"""The shards of one coordinator's topic: one for each partition that this broker leads."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId
from ottla.broker.coordinators.shard import Shard
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.view import ClusterView
from ottla.group.records.stored import partition_of

# The pause before retrying a partition that could not be loaded.
_LOAD_AGAIN_MS = 200

S = TypeVar("S", bound=Shard[Any, Any])


@dataclass(frozen=True, slots=True)
class ShardsStatus:
    """Counts of the led partitions of a coordinator's topic, and of those still loading."""

    led: int
    loading: int


class Coordinators(ABC, Generic[S]):
    """The shards of one topic, one for each partition that this broker leads.

    The first FindCoordinator request creates the topic. Invariant: a shard in use belongs to the
    current partition with its index.
    """

    def __init__(
        self,
        topic: str,
        view: ClusterView,
        runtime: Runtime,
        partitions: Partitions,
    ) -> None:
        self._topic = topic
        self._view = view
        self._runtime = runtime
        self._partitions = partitions
        self._shards: dict[int, S] = {}
        self._loads: dict[asyncio.Task[None], None] = {}
        self._has_timers = False
        self._closed = False

    @abstractmethod
    def new_shard(self, partition: Partition) -> S:
        """Create a shard for a partition, not loaded yet."""

    def start_timers(self) -> None:
        """Start periodic work, before the first shard is created."""

    def every(self, interval_ms: int, upkeep: Callable[[S], None]) -> None:
        """Call `upkeep` with each shard at intervals, until the broker stops."""
        purgatory = self._runtime.purgatory

        def run() -> None:
            if not self._closed:
                for shard in self.shards():
                    upkeep(shard)
                purgatory.schedule(interval_ms, run)

        purgatory.schedule(interval_ms, run)

    def shards(self) -> Iterator[S]:
        """Return all shards, including loading ones."""
        return iter(list(self._shards.values()))

    def shards_status(self) -> ShardsStatus:
        """Return the number of shards, and of loading shards."""
        return ShardsStatus(
            len(self._shards), sum(shard.coordinator is None for shard in self._shards.values())
        )

    def take_up(self) -> None:
        """Open a shard for every partition of the topic that this broker leads."""
        for partition in self._partitions:
            self.on_role(partition)

    def on_role(self, partition: Partition) -> None:
        """Open or close the shard of a partition whose role or leader epoch has changed."""
        if partition.topic != self._topic or self._closed:
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
            self._of(partition)

    def give_up(self) -> None:
        """Close all shards, because the topic is deleted.

        Waiting requests are answered with NOT_COORDINATOR.
        """
        for task in list(self._loads):
            task.cancel()
        for shard in self._shards.values():
            shard.close(ErrorCode.NOT_COORDINATOR)
        self._shards.clear()

    def close(self) -> None:
        """Close all shards, because the broker stops."""
        self._closed = True
        self.give_up()

    def partition_index(self, key: str) -> int | None:
        """Return the index of the partition that has the key; None if the topic does not exist."""
        topic = self._view.image.topic(self._topic)
        return None if topic is None else partition_of(key, len(topic.partitions))

    def coordinator_of(self, key: str) -> BrokerId | None:
        """Return the live broker that coordinates the key; None if there is none."""
        index = self.partition_index(key)
        if index is None:
            return None
        image = self._view.image
        state = image.partition(self._topic, index)
        return None if state is None or state.leader not in image.brokers else state.leader

    def find(self, key: str, named: str) -> S:
        """Return the shard of a key, which may still be loading.

        `named` is the kind of key for error messages. Raises OttlaError (NOT_COORDINATOR).
        """
        index = self.partition_index(key)
        try:
            if index is not None:
                return self.at(index)
        except OttlaError:
            pass  # This broker does not lead the partition.
        raise OttlaError(
            ErrorCode.NOT_COORDINATOR,
            f"this broker does not coordinate {named} {key!r}; find its coordinator again",
        )

    def at(self, index: int) -> S:
        """Return the shard of a partition. Raises OttlaError if this broker does not lead it."""
        partition = self._partitions.get(self._topic, index)
        partition.check_led()
        return self._of(partition)

    def _of(self, partition: Partition) -> S:
        shard = self._shards.get(partition.index)
        if shard is not None:
            if shard.partition is partition:
                return shard
            shard.close(ErrorCode.NOT_COORDINATOR)
        if not self._has_timers:
            self._has_timers = True
            self.start_timers()
        shard = self._shards[partition.index] = self.new_shard(partition)
        end = partition.log_end_offset
        if end == partition.log_start_offset:
            shard.load_nothing()
        else:
            # Load after all records are committed: another leader may lack uncommitted ones.
            partition.on_high_watermark(end, partial(self._load, shard))
        return shard

    def _load(self, shard: S, code: ErrorCode) -> None:
        index = shard.partition.index
        if self._shards.get(index) is not shard:
            return
        if code is not ErrorCode.NONE:
            # Leadership is uncertain, or too few replicas are in sync. Retry if this broker still
            # leads.
            del self._shards[index]
            self._runtime.purgatory.schedule(_LOAD_AGAIN_MS, self.take_up)
            return
        task = asyncio.get_running_loop().create_task(shard.load_or_log())
        self._loads[task] = None
        task.add_done_callback(lambda done: self._loads.pop(done, None))
