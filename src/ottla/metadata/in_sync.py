"""The ISR and the ELR of a partition, as members leave and join (KIP-966). Pure values."""

from collections.abc import Collection

from ottla.base.ids import BrokerId
from ottla.metadata.image import NO_LEADER, PartitionImage


def effective_min_isr(partition: PartitionImage, min_isr: int) -> int:
    """`min.insync.replicas`, or the number of replicas if that is less."""
    return min(min_isr, len(partition.replicas))


def without_members(
    partition: PartitionImage, leaving: Collection[BrokerId], min_isr: int
) -> PartitionImage:
    """Remove `leaving` from the ISR; if the ISR becomes too small, they join the ELR.

    Below the minimum nothing is committed any more, so the members that leave then have all
    committed records. If the ISR becomes empty, the leader becomes the first of the last known ELR,
    as in Kafka, so that an unclean election prefers it. The `leader` field does not change.
    """
    isr = tuple(broker for broker in partition.isr if broker not in leaving)
    left = tuple(broker for broker in partition.isr if broker in leaving)
    after = _settled(partition, isr, partition.elr + left, min_isr)
    if isr or not left or partition.leader == NO_LEADER:
        return after
    known = tuple(b for b in partition.last_known_elr if b != partition.leader)
    return after._replace(last_known_elr=(partition.leader, *known))


def with_members(
    partition: PartitionImage, joining: Collection[BrokerId], min_isr: int
) -> PartitionImage:
    """Add `joining` to the ISR. The caller has checked that they may join (R-4)."""
    joined = tuple(b for b in partition.replicas if b in joining and b not in partition.isr)
    return _settled(partition, partition.isr + joined, partition.elr, min_isr)


def without_eligibility(
    partition: PartitionImage, lossy: Collection[BrokerId], min_isr: int
) -> PartitionImage:
    """Remove brokers that may have lost records from ISR and ELR (R-6).

    They stay in the last known ELR: a partition without a leader may be recovered from them.
    """
    isr = tuple(broker for broker in partition.isr if broker not in lossy)
    elr = tuple(broker for broker in partition.elr if broker not in lossy)
    out = tuple(broker for broker in partition.isr + partition.elr if broker in lossy)
    known = partition.last_known_elr
    known += tuple(broker for broker in out if broker not in known)
    return _settled(partition, isr, elr, min_isr)._replace(last_known_elr=known)


def _settled(
    partition: PartitionImage,
    isr: tuple[BrokerId, ...],
    elr: tuple[BrokerId, ...],
    min_isr: int,
) -> PartitionImage:
    """Make ISR and ELR disjoint; a large enough ISR empties the ELR."""
    if len(isr) >= effective_min_isr(partition, min_isr):
        elr = ()
    elr = tuple(broker for broker in elr if broker not in isr)
    return partition._replace(isr=isr, elr=elr)
