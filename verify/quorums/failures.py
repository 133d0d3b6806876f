"""How many failures are tolerated: found by letting replicas die, with the shipped elections."""

from dataclasses import dataclass

from ottla.base.ids import BrokerId
from ottla.controller.election import Rules, settle
from ottla.metadata.image import NO_LEADER, PartitionImage
from ottla.metadata.in_sync import effective_min_isr


@dataclass(frozen=True, slots=True)
class Tolerated:
    """Failures, one after the other, after which something still holds."""

    # acks=all is still accepted.
    writes: int
    # There is a leader with every acknowledged record; these may be read.
    leader: int
    # Copies of an acknowledged record may be lost for ever, whichever they are.
    copies_lost: int


def of_in_sync(copies: int, min_isr: int) -> Tolerated:
    """Of `copies` replicas in sync, with `min.insync.replicas`.

    Acknowledged is what the whole ISR has, which may have shrunk to the minimum.
    """
    image = in_sync(copies)
    writes = leader = 0
    for dead in range(1, copies + 1):
        live = dict.fromkeys(image.replicas[dead:], 0)
        change = settle(image, live, Rules(min_isr), cause="a replica died")
        assert change is not None, "the dead leave the ISR"
        image = change.after
        if image.leader != NO_LEADER:
            leader = dead
            if len(image.isr) >= effective_min_isr(image, min_isr):
                writes = dead
    return Tolerated(writes, leader, effective_min_isr(image, min_isr) - 1)


def of_majority(copies: int) -> Tolerated:
    """Of `copies` voters: a leader needs the votes of a majority, a record its copies."""
    fewer = copies - majority_of(copies)
    return Tolerated(fewer, fewer, majority_of(copies) - 1)


def majority_of(copies: int) -> int:
    """More than half."""
    return copies // 2 + 1


def in_sync(copies: int) -> PartitionImage:
    """Replicas 1 to `copies`, all in sync; the first leads."""
    replicas = tuple(BrokerId(number) for number in range(1, copies + 1))
    return PartitionImage(replicas[0], 1, replicas, replicas)
