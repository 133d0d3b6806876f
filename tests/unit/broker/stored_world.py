"""Coordinators' partitions on a disk in memory, with rubbish in them: what is left of them.

`python -m tests.unit.broker.stored_world --cases 10000 --seed 1` runs the property by hand.
"""

import argparse
import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from random import Random
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

from ottla.base.errors import OttlaError
from ottla.base.ids import TopicPartition
from ottla.broker.coordinators import Shard
from ottla.broker.groups.shard import GroupShard
from ottla.broker.partitions.partition import Partition
from ottla.broker.runtime.purgatory import Purgatory
from ottla.broker.runtime.signal import Signal
from ottla.broker.share.states import ShareStateShard
from ottla.broker.transactions.shard import TransactionShard
from ottla.group.coordinator.flights import Flights
from ottla.group.records import stored as group_records
from ottla.group.records.consumer import (
    Current,
    CurrentRecord,
    EpochRecord,
    MemberMetadata,
    MemberRecord,
    MemberState,
    TargetEpochRecord,
    TargetRecord,
)
from ottla.group.records.share import (
    ShareCurrent,
    ShareCurrentRecord,
    ShareEpochRecord,
    ShareMemberMetadata,
    ShareMemberRecord,
    ShareStateRecord,
    TopicState,
)
from ottla.group.records.stored import (
    CommittedOffset,
    GroupRecord,
    OffsetRecord,
    StoredGroup,
    StoredMember,
)
from ottla.group.values.settings import GroupSettings
from ottla.group.values.topics import NO_TOPICS, AssignedSlot
from ottla.record.builder import BatchBuilder
from ottla.record.control import ControlType, EndTransactionMarker, build_marker
from ottla.record.header import HEADER_SIZE, read_header
from ottla.share import records as share_records
from ottla.share.coordinator import ShareStateSettings
from ottla.share.records import ShareKey, ShareState, SnapshotRecord, UpdateRecord
from ottla.share.states import DeliveryState, StateBatch
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.storage.log.open_log import open_log
from ottla.storage.recovery.readable import Whole
from ottla.storage.segment.config import LogConfig
from ottla.testing.clock import ManualClock
from ottla.transaction import records as transaction_records
from ottla.transaction.coordinator import TransactionSettings
from ottla.transaction.transaction import Transaction, TransactionRecord, TransactionState

from .groups_world import ManualPurgatory

Written = tuple[bytes, bytes | None]
TOPIC = UUID(int=5)
SLOTS = frozenset({AssignedSlot(TOPIC, 0), AssignedSlot(TOPIC, 1)})
KINDS = ("groups", "transactions", "share states")
TOPICS = dict(
    zip(KINDS, ("__consumer_offsets", "__transaction_state", "__share_group_state"), strict=True)
)


def group_state(random: Random, at: int) -> Iterator[Written]:
    """Records of groups of each kind, as they come; `at` is their time, and their epoch."""
    number = random.randrange(3)
    member = f"m{random.randrange(3)}"
    share = frozenset(random.sample(sorted(SLOTS), 1))
    stored = StoredMember(member, None, "c", "/h", 60_000, 10_000, b"\0\1", b"\0\1")
    metadata = MemberMetadata(None, None, "c", "/h", ("t",), None, 60_000, None)
    topic = TopicState(TOPIC, "t", frozenset({0, 1}))
    chosen: list[group_records.CoordinatorRecord] = random.choice(
        [
            [
                OffsetRecord(
                    f"{kind}{number}",
                    TopicPartition("t", random.randrange(3)),
                    CommittedOffset(at, 1, "note", at),
                )
                for kind in ("classic", "plain")
            ],
            [GroupRecord(f"classic{number}", StoredGroup("x", at, "p", member, at, (stored,)))],
            [
                EpochRecord(f"consumer{number}", at, 7),
                MemberRecord(f"consumer{number}", member, metadata),
                TargetEpochRecord(f"consumer{number}", at, at),
                TargetRecord(f"consumer{number}", member, share),
                CurrentRecord(
                    f"consumer{number}",
                    member,
                    Current(at, at, MemberState.STABLE, share, frozenset()),
                ),
            ],
            [
                ShareEpochRecord(f"share{number}", at, 7),
                ShareMemberRecord(
                    f"share{number}", member, ShareMemberMetadata(None, "c", "/h", ("t",))
                ),
                ShareCurrentRecord(f"share{number}", member, ShareCurrent(at, at, SLOTS)),
                ShareStateRecord(f"share{number}", (topic,)),
            ],
            [OffsetRecord(f"plain{number}", TopicPartition("t", 0), None)],
        ]
    )
    yield from (group_records.encode(each) for each in chosen)


def transaction_state(random: Random, _at: int) -> Iterator[Written]:
    known = Transaction(
        producer_id=random.randrange(1000),
        producer_epoch=random.randrange(10),
        timeout_ms=60_000,
        state=random.choice([TransactionState.EMPTY, TransactionState.ONGOING]),
        partitions=frozenset({TopicPartition("a", random.randrange(4))}),
    )
    record = TransactionRecord(f"id{random.randrange(6)}", known if random.random() < 0.9 else None)
    yield transaction_records.encode(record)


def share_state(random: Random, at: int) -> Iterator[Written]:
    key = ShareKey("g", TOPIC, random.randrange(4))
    batches = (StateBatch(at, at + 3, DeliveryState.ACKNOWLEDGED, 1),)
    yield share_records.encode(
        random.choice(
            [
                SnapshotRecord(key, ShareState(1, at, 0, 0, batches, snapshot_epoch=0)),
                UpdateRecord(key, 0, 0, -1, 0, batches),
            ]
        )
    )


STATES: dict[str, Callable[[Random, int], Iterator[Written]]] = {
    "groups": group_state,
    "transactions": transaction_state,
    "share states": share_state,
}
DECODERS: dict[str, Callable[[bytes, bytes | None], object]] = {
    "groups": group_records.decode,
    "transactions": transaction_records.decode,
    "share states": share_records.decode,
}


def rubbish(kind: str, random: Random) -> Written:
    """A record that says nothing: any bytes, or a good record cut short or in a wrong version."""
    while True:
        key, value = next(STATES[kind](random, 999))
        match random.randrange(6):
            case 0:
                key, value = random.randbytes(random.randrange(40)), random.randbytes(20)
            case 1:
                key = key[: random.randrange(len(key))]
            case 2 if value:
                value = value[: random.randrange(len(value))]
            case 3:
                key = random.randrange(16, 1 << 15).to_bytes(2, "big") + key[2:]
            case 4 if value:
                value = random.randrange(5, 1 << 15).to_bytes(2, "big") + value[2:]
            case _:
                key, value = random.randbytes(random.randrange(20)), None
        try:
            is_known = DECODERS[kind](key, value) is not None
        except OttlaError:
            is_known = False
        if not is_known:
            return key, value


class StoredWorld:
    """One partition of a coordinator's topic, written batch by batch."""

    def __init__(self, kind: str, segment_bytes: int = 2_000) -> None:
        self.kind = kind
        self.filesystem = MemoryFileSystem()
        self.topic_partition = TopicPartition(TOPICS[kind], 0)
        self.log = open_log(
            self.filesystem,
            f"/logs/{self.topic_partition}",
            self.topic_partition,
            LogConfig(segment_bytes=segment_bytes),
            now_ms=0,
        )
        # Where each batch stands, and what it says.
        self.batches: list[tuple[str, int, int, list[Written]]] = []

    def write(self, *content: Written) -> None:
        """Append a batch."""
        self._append(BatchBuilder(), content)

    def write_transactional(self, producer_id: int, *content: Written) -> None:
        """Append a batch of a producer's transaction."""
        builder = BatchBuilder(producer_id=producer_id, producer_epoch=0, transactional=True)
        self._append(builder, content)

    def end_transaction(self, producer_id: int) -> None:
        """Append the marker that commits it."""
        marker = EndTransactionMarker(ControlType.COMMIT, 0)
        self._append_batch(
            build_marker(marker, producer_id=producer_id, producer_epoch=0, timestamp=0), []
        )

    def _append(self, builder: BatchBuilder, content: Sequence[Written]) -> None:
        for key, value in content:
            builder.append(0, key, value)
        self._append_batch(builder.build(), list(content))

    def _append_batch(self, batch: bytearray, content: list[Written]) -> None:
        self.log.append_as_leader(memoryview(batch), read_header(batch), 0, 0)
        active = self.log.segments.active
        self.batches.append((active.path(), active.size - len(batch), active.size, content))

    def damage(self, path: str, position: int, content: bytes) -> None:
        """Change bytes of a file behind the log's back."""
        node = self.filesystem._file(path)  # A disk does not ask.
        node.content[position : position + len(content)] = content

    def shard(self) -> Shard[Any, Any]:
        clock = ManualClock()
        partition = SimpleNamespace(
            topic_partition=self.topic_partition,
            index=0,
            leader_epoch=0,
            config=self.log.config,
            log=self.log,
            log_start_offset=self.log.log_start_offset,
            log_end_offset=self.log.log_end_offset,
            high_watermark=self.log.log_end_offset,
            append_internal=lambda records, _producer=None: (0, len(records) - 1),
            on_high_watermark=lambda _end, _callback: None,
        )
        of = cast("Partition", partition)
        purgatory = cast("Purgatory", ManualPurgatory(clock))
        if self.kind == "groups":
            return GroupShard(
                of,
                GroupSettings(),
                clock,
                purgatory,
                lambda: UUID(int=1),
                Flights(),
                lambda: NO_TOPICS,
                Signal(),
                commit_timeout_ms=1000,
                load_bytes=1000,
            )
        if self.kind == "transactions":
            return TransactionShard(
                of,
                TransactionSettings(),
                clock,
                purgatory,
                lambda _shard, _markers, _then: None,
                commit_timeout_ms=1000,
                load_bytes=1000,
            )
        return ShareStateShard(
            of, ShareStateSettings(), clock, purgatory, commit_timeout_ms=1000, load_bytes=1000
        )

    def loaded(self) -> Shard[Any, Any]:
        """A shard that was loaded from the log as it is."""
        shard = self.shard()
        asyncio.run(shard.load())
        assert shard.coordinator is not None
        return shard


def told(shard: Shard[Any, Any]) -> dict[str, object]:
    """What a coordinator holds, by names that can be compared."""
    if shard.what == "groups":
        held = shard.coordinator.registry
        return {
            **{f"offsets of {group.group_id}": dict(group.offsets) for group in held.all()},
            **{f"members of {group.group_id}": sorted(group.members) for group in held.all()},
            **{f"epoch of {key}": g.epoch for key, g in held.consumer_groups.items()},
            **{f"shares of {key}": dict(g.target) for key, g in held.consumer_groups.items()},
            **{f"share group {key}": (g.epoch, g.members, g.begun)
               for key, g in held.share.groups.items()},
        }  # fmt: skip
    held = shard.coordinator
    return dict(held.transactions if shard.what == "transactions" else held.states)


def without(world: StoredWorld, lost: int | None) -> dict[str, object]:
    """What a log without rubbish, and without the batch number `lost`, is loaded as."""
    clean = StoredWorld(world.kind)
    for number, (_, _, _, content) in enumerate(world.batches):
        good = [each for each in content if number != lost and _is_good(world.kind, each)]
        if good:
            clean.write(*good)
    shard = clean.loaded()
    if lost is not None and world.kind == "groups":
        shard.coordinator.registry.mend()
    return told(shard)


def _is_good(kind: str, content: Written) -> bool:
    try:
        return DECODERS[kind](*content) is not None
    except OttlaError:
        return False


def filled(kind: str, random: Random) -> StoredWorld:
    """A log of good records, and some that are rubbish, alone or among good ones."""
    world = StoredWorld(kind)
    for at in range(random.randrange(3, 30)):
        content = list(STATES[kind](random, at))
        if random.random() < 0.3:
            content.insert(random.randrange(len(content) + 1), rubbish(kind, random))
        world.write(*content)
    return world


def check_rubbish(kind: str, random: Random) -> None:
    """Records that say nothing cost nothing else."""
    world = filled(kind, random)
    assert told(world.loaded()) == without(world, None)


def check_flipped_bit(kind: str, random: Random) -> None:
    """One bit costs one batch at most, and nothing where the batch can be put right."""
    world = filled(kind, random)
    number = random.randrange(len(world.batches))
    path, begin, end, _ = world.batches[number]
    # Early places are the header's.
    place = random.randrange(begin, min(end, begin + HEADER_SIZE) if random.random() < 0.5 else end)
    before = world.filesystem.read_bytes(path)[place]
    world.damage(path, place, bytes([before ^ (1 << random.randrange(8))]))
    shard = world.loaded()
    is_lost = place - begin >= 17
    assert told(shard) == without(world, number if is_lost else None), (number, place - begin)
    assert (shard.losses.batches == 1) == is_lost


def check_torn_files(kind: str, random: Random) -> None:
    """Whatever stands there: it is loaded, and every batch that was not touched is read."""
    world = filled(kind, random)
    before = {path: world.filesystem.read_bytes(path) for path, _, _, _ in world.batches}
    for _ in range(random.randrange(1, 5)):
        path, begin, end, _ = random.choice(world.batches)
        place = random.randrange(begin, end)
        length = random.randrange(1, 300)
        size = len(world.filesystem.read_bytes(path))
        content = random.choice([random.randbytes(length), bytes(length)])
        world.damage(path, place, content[: size - place])
    world.loaded()
    read = {
        bytes(each.buffer[each.place + 21 : each.place + each.header.size])
        for part in world.log.readable(1000)
        for each in part
        if isinstance(each, Whole)
    }
    after = {path: world.filesystem.read_bytes(path) for path in before}
    for path, begin, end, _ in world.batches:
        if before[path][begin:end] == after[path][begin:end]:
            assert before[path][begin + 21 : end] in read


CHECKS = (check_rubbish, check_flipped_bit, check_torn_files)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    for seed in range(chosen.seed, chosen.seed + chosen.cases):
        for kind in KINDS:
            for check in CHECKS:
                try:
                    check(kind, Random(seed))
                except BaseException:
                    sys.stderr.write(f"{check.__name__}({kind!r}, Random({seed}))\n")
                    raise
    count = chosen.cases * len(KINDS) * len(CHECKS)
    sys.stdout.write(f"{chosen.cases} seeds, {count} cases\n")


if __name__ == "__main__":
    main()
