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
    """Partitions of a coordinator's topic that this broker leads.

    `loading` of them are not read yet.
    """

    led: int
    loading: int


class Coordinators(ABC, Generic[S]):
    """The coordinators in the partitions of one topic: a shard for each that this broker leads.

    The first FindCoordinator request creates the topic.
    Invariant: a shard in use belongs to the partition that is served under its number.
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
        """A shard for a partition, not loaded yet."""

    def start_timers(self) -> None:
        """Start periodic work, before the first shard is made."""

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
        """Every shard, loading ones included."""
        return iter(list(self._shards.values()))

    def shards_status(self) -> ShardsStatus:
        """The number of shards, and how many are loading."""
        return ShardsStatus(
            len(self._shards), sum(shard.coordinator is None for shard in self._shards.values())
        )

    def take_up(self) -> None:
        """Open a shard for every partition of the topic that this broker leads."""
        for partition in self._partitions:
            self.on_role(partition)

    def on_role(self, partition: Partition) -> None:
        """Load or release the keys of a partition whose leader has changed."""
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

        Answer waiting requests with NOT_COORDINATOR.
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
        """The partition that holds the key; None while there is no topic."""
        topic = self._view.image.topic(self._topic)
        return None if topic is None else partition_of(key, len(topic.partitions))

    def coordinator_of(self, key: str) -> BrokerId | None:
        """The live broker that coordinates the key; None while there is none."""
        index = self.partition_index(key)
        if index is None:
            return None
        image = self._view.image
        state = image.partition(self._topic, index)
        return None if state is None or state.leader not in image.brokers else state.leader

    def find(self, key: str, named: str) -> S:
        """The shard of a key, loaded or not; error messages call the key `named`.

        Raises OttlaError (NOT_COORDINATOR).
        """
        index = self.partition_index(key)
        try:
            if index is not None:
                return self.at(index)
        except OttlaError:
            pass  # It is not led here.
        raise OttlaError(
            ErrorCode.NOT_COORDINATOR,
            f"this broker does not coordinate {named} {key!r}; find its coordinator again",
        )

    def at(self, index: int) -> S:
        """The shard of a partition. Raises OttlaError if this broker does not lead it."""
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
            # Load only committed records: another leader might not have the others.
            partition.on_high_watermark(end, partial(self._load, shard))
        return shard

    def _load(self, shard: S, code: ErrorCode) -> None:
        index = shard.partition.index
        if self._shards.get(index) is not shard:
            return
        if code is not ErrorCode.NONE:
            # Leadership is in doubt, or too few replicas are in sync: retry, in case this broker
            # still leads.
            del self._shards[index]
            self._runtime.purgatory.schedule(_LOAD_AGAIN_MS, self.take_up)
            return
        task = asyncio.get_running_loop().create_task(shard.load_or_log())
        self._loads[task] = None
        task.add_done_callback(lambda done: self._loads.pop(done, None))
