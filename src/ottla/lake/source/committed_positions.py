"""Adds the brokers' own ledger to a load's evidence: it says why offsets are missing."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client import sync
from ottla.client.ranges.account import OffsetAccount
from ottla.lake.model.manifest import Manifest
from ottla.lake.model.plan import Range
from ottla.lake.source.access import Bootstrap, as_brokers
from ottla.lake.source.cluster import connect
from ottla.lake.source.source import Cluster, TopicDescription
from ottla.ledger.partition import LedgerTotals, PartitionLedger, Unreadable

# How many damaged places are named one by one for each partition.
_NAMED_MAX = 10


def settled(
    ledgers: Sequence[PartitionLedger], described: TopicDescription, bootstrap: Bootstrap
) -> list[PartitionLedger]:
    """Return the ledgers of a load that was read, with the brokers' account added to each."""
    cluster = connect(bootstrap)
    try:
        return [_settled(cluster, ledger, described) for ledger in ledgers]
    finally:
        cluster.close()


def _settled(
    cluster: Cluster, ledger: PartitionLedger, described: TopicDescription
) -> PartitionLedger:
    account = account_of(
        cluster, Range(described.topic, ledger.partition, ledger.start, ledger.end)
    )
    if account is not None:
        return ledger.settled(told(account))
    # Without the broker's account, holes are accepted only if the topic is compacted.
    return ledger if described.compacted else replace(ledger, compacted=0)


def account_of(cluster: Cluster, wanted: Range) -> OffsetAccount | None:
    """Return the broker's account of a range; None if its log is too damaged to read."""
    try:
        return cluster.account(wanted)
    except OttlaError as error:
        if error.code is ErrorCode.CORRUPT_MESSAGE:
            return None
        raise


def skipped_lines(topic: str, skipped: Iterable[Unreadable]) -> list[str]:
    """Return one line for each partition: which offsets could not be read, and why."""
    by_partition: dict[int, list[Unreadable]] = {}
    for one in skipped:
        by_partition.setdefault(one.partition, []).append(one)
    lines = []
    for partition, found in sorted(by_partition.items()):
        count = sum(one.end - one.start for one in found)
        named = [f"{one.start} to {one.end} ({one.cause})" for one in found[:_NAMED_MAX]]
        if len(found) > _NAMED_MAX:
            named.append(f"and {len(found) - _NAMED_MAX} more")
        lines.append(f"{topic}-{partition}: {count} unreadable offsets: {'; '.join(named)}")
    return lines


def commit_positions(group: str, manifest: Manifest, bootstrap: Bootstrap) -> None:
    """Commit the table's positions for a group, which retention may wait for.

    If this fails the load is still in the table, and the next load commits again. Raises
    OttlaError.
    """
    offsets = {TopicPartition(manifest.topic, p): o for p, o in manifest.positions.items()}
    brokers = as_brokers(bootstrap)
    with sync.Admin(brokers.bootstrap, config=brokers.access.client_config()) as admin:
        admin.groups.set_offsets(group, offsets)


def told(account: OffsetAccount) -> LedgerTotals:
    """Return a broker's account in the form of a manifest."""
    return LedgerTotals(
        data=account.data + account.undecided,
        control=account.control,
        aborted=account.aborted,
        compacted=account.compacted,
        deleted=account.deleted,
        lost=account.lost,
        unexplained=account.unexplained,
    )


def losses(account: OffsetAccount) -> str:
    """Return a description of the elections that lost offsets; empty if there were none."""
    return ", ".join(
        f"{one.start} to {one.end} were lost with the election of leader epoch {one.leader_epoch}"
        for one in account.lost_by
    )


@contextmanager
def told_of_loss(
    cluster: Cluster, described: TopicDescription, before: Manifest | None
) -> Iterator[None]:
    """Add the brokers' ledger to the error for a log that ends before the table's position."""
    try:
        yield
    except OttlaError as error:
        if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE or not described.has_ledger:
            raise
        assert before is not None
        words = []
        for partition, position in before.positions.items():
            bound = described.bounds.get(partition)
            if bound is not None and bound.end < position:
                words.append(_loss(cluster, described.topic, partition, bound.end, position))
        raise OttlaError(error.code, ". ".join([error.message, *filter(None, words)])) from error


def _loss(cluster: Cluster, topic: str, partition: int, end: int, position: int) -> str:
    try:
        account = cluster.account(Range(topic, partition, end, position))
    except OttlaError:
        return ""  # The replica that had them is not back, so no ledger has them yet.
    found = losses(account)
    return f"Offsets of {topic}-{partition}: {found}" if found else ""


def explained(account: OffsetAccount, offsets: Sequence[int]) -> str:
    """Return which elections explain that other records than were loaded are at `offsets`."""
    relevant = [one for one in account.lost_by if any(one.start <= o < one.end for o in offsets)]
    return losses(replace(account, lost_by=tuple(relevant)))
