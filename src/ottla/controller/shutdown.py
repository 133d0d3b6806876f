"""Controlled shutdown: moves leadership away from a broker before it stops."""

from collections.abc import Collection, Mapping

from ottla.base.ids import BrokerId
from ottla.controller.change import Change, How, Rules
from ottla.controller.election import Live, led
from ottla.metadata.image import PartitionImage
from ottla.metadata.in_sync import without_members


def move_away(
    partition: PartitionImage, stopping: BrokerId, live: Live, rules: Rules, *, cause: str
) -> Change | None:
    """Remove a stopping broker from leadership and ISR.

    None if it has neither, or no other can lead.

    `live` is without the stopping brokers. Only a member of the ISR takes over: without one the
    broker leads until it stops, and no record is lost.
    """
    others = [b for b in partition.replicas if b in partition.isr and b in live and b != stopping]
    if stopping not in partition.isr or not others:
        return None
    alone = without_members(partition, (stopping,), rules.min_isr)
    setting = "min.insync.replicas" if alone.elr else None
    if partition.leader != stopping:
        return Change(alone, None, cause, f"{stopping} stops and left the ISR", setting)
    evidence = f"{others[0]} is the first live replica in the ISR beside {stopping}"
    return Change(led(alone, others[0], live), How.SHUTDOWN, cause, evidence, setting)


def without(live: Live, stopping: Collection[BrokerId]) -> Mapping[BrokerId, int]:
    """Live brokers that can take over from the stopping ones."""
    return {broker: epoch for broker, epoch in live.items() if broker not in stopping}


def still_led(partition: PartitionImage, stopping: BrokerId) -> bool:
    """Whether the stopping broker still leads a partition that has other replicas.

    The answer to ControlledShutdown names these, so that the broker asks again or gives up.
    """
    return partition.leader == stopping and len(partition.replicas) > 1
