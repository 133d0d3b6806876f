"""Laws of a partition of `__share_group_state` at work: what was written is read back."""

import asyncio
from typing import Any, cast
from uuid import UUID

from ottla.base.errors import ErrorCode
from ottla.broker.partitions.partition import Partition
from ottla.broker.runtime.purgatory import Purgatory
from ottla.broker.share.states import ShareStateShard
from ottla.record.builder import BatchBuilder
from ottla.record.header import read_header
from ottla.record.reader import records
from ottla.share.coordinator import KeyAnswer, ShareStateSettings, Write
from ottla.share.records import ShareKey, ShareState
from ottla.share.states import DeliveryState, StateBatch
from ottla.testing.clock import ManualClock

from .groups_world import ManualPurgatory, MemoryPartition

KEY = ShareKey("tasks", UUID(int=7), 0)
OTHER = ShareKey("tasks", UUID(int=7), 1)
ACCEPTED = StateBatch(5, 9, DeliveryState.ACKNOWLEDGED, 1)


class Asker:
    """Whoever waits, and what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def give(self, message: Any) -> None:
        self.told.append(message)

    def fail(self, code: ErrorCode) -> None:
        self.told.append(code)


class World:
    """A shard and its surroundings."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.partition = MemoryPartition()
        self.shard = self.new_shard()
        self.shard.load_nothing()

    def new_shard(self) -> ShareStateShard:
        return ShareStateShard(
            cast("Partition", self.partition),
            ShareStateSettings(),
            self.clock,
            cast("Purgatory", ManualPurgatory(self.clock)),
            commit_timeout_ms=5_000,
            load_bytes=1_000,
        )

    def initialize(self, key: ShareKey, start_offset: int) -> Asker:
        asker = Asker()
        self.shard.run(asker, lambda core, ask, at: core.initialize(ask, key, 1, start_offset, at))
        return asker

    def write(self, key: ShareKey, *batches: StateBatch) -> Asker:
        asker = Asker()
        written = Write(1, 0, -1, len(batches), batches)
        self.shard.run(asker, lambda core, ask, at: core.write(ask, key, written, at))
        return asker

    def reloaded(self) -> dict[ShareKey, ShareState]:
        """What another shard makes of the log."""
        again = self.new_shard()
        asyncio.run(again.load())
        return again.loaded().states


def test_a_shard_that_reads_its_log_back_holds_what_it_held() -> None:
    """Snapshots, and the updates after them."""
    world = World()
    world.initialize(KEY, 5)
    world.write(KEY, ACCEPTED)
    world.initialize(OTHER, 3)
    states = world.reloaded()
    assert states == world.shard.loaded().states
    assert (states[KEY].start_offset, states[KEY].batches) == (5, (ACCEPTED,))
    assert (states[OTHER].start_offset, states[OTHER].batches) == (3, ())


def test_what_is_written_is_told_when_it_is_committed() -> None:
    """Before that a power cut could take it back."""
    world = World()
    asker = world.initialize(KEY, 5)
    assert asker.told == []
    world.partition.commit()
    (answer,) = asker.told
    assert isinstance(answer, KeyAnswer)
    assert answer.code is ErrorCode.NONE


def test_what_cannot_be_appended_is_told_as_kafka_tells_it_and_changes_nothing() -> None:
    """The log's trouble is the coordinator's; a state too large for a message is nobody's fault."""
    world = World()
    world.initialize(KEY, 5)
    before = dict(world.shard.loaded().states)
    for trouble, told in (
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ):
        world.partition.fails_with = trouble
        assert world.write(KEY, ACCEPTED).told == [told]
        assert world.shard.loaded().states == before


def test_records_before_the_logs_beginning_do_not_count() -> None:
    """Though they stand in the batch in which it begins."""
    world = World()
    world.initialize(KEY, 5)
    world.initialize(OTHER, 3)
    log = world.partition.log
    both = BatchBuilder()
    for batch in log.batches:
        for record in records(batch, 0, read_header(batch)):
            both.append(0, record.key, record.value)
    log.batches = [bytes(both.build())]
    assert set(world.reloaded()) == {KEY, OTHER}
    log.log_start_offset = 1
    assert set(world.reloaded()) == {OTHER}
