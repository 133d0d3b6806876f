"""What a world holds of a partition: its copies on the machines, and its state in the store."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ottla.broker.partitions.partition import Partition
from ottla.record.reader import batches
from ottla.testing.simulation.machine.world import World

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class StoredState:
    """What the store says."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    version: int


def state_of(world: World, topic: str, number: int) -> StoredState | None:
    """The state of a partition as the store has it now; None before it exists."""
    entry = world.tree.entries.get(f"/brokers/topics/{topic}/partitions/{number}/state")
    topic_entry = world.tree.entries.get(f"/brokers/topics/{topic}")
    if entry is None or topic_entry is None:
        return None
    told = _told(entry.data)
    replicas = _told(topic_entry.data)["partitions"][str(number)]
    return StoredState(
        told["leader"], told["leader_epoch"], tuple(told["isr"]), tuple(replicas), entry.version
    )


@lru_cache(maxsize=64)
def _told(data: bytes) -> dict[str, Any]:
    # Looked at ten times a second, and seldom another.
    told: dict[str, Any] = json.loads(data)
    return told


def replicas_of(world: World, topic: str, number: int) -> Iterator[tuple[int, Partition]]:
    """The copies on machines that serve, by broker."""
    for broker_id, machine in world.machines.items():
        if machine.is_ready and machine.broker is not None:
            partition = machine.broker.partitions.find(topic, number)
            if partition is not None and partition.failure is None:
                yield broker_id, partition


def records(partition: Partition, begin: int, end: int) -> bytes:
    """The batches from `begin` up to `end`, as they stand in the log."""
    parts: list[bytes] = []
    offset = begin
    while offset < end:
        located = partition.log.read(offset, _CHUNK_BYTES, max_offset=end)
        found = located.file.pread(located.size, located.position)
        after = offset
        for position, header in batches(found):
            after = header.last_offset + 1
            if header.last_offset >= begin:
                parts.append(found[position : position + header.size])
        if after == offset:
            break
        offset = after
    return b"".join(parts)
