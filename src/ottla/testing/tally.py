"""Counts what tests rarely want: rebalances, records sent again, and commits that expired.

Each broker counts into `Counts` of its own; `total` is the sum of all brokers of this process, from
which the pytest plugin derives the counts of a test.
"""

from dataclasses import dataclass

from ottla.base import system
from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.broker.partitions.partition import Partition
from ottla.broker.process.parts import Parts
from ottla.group.coordinator.flights import Ending, Flight
from ottla.group.model.turn import GroupDecision
from ottla.group.records.stored import OffsetRecord
from ottla.network.connection import Connection
from ottla.record.reader import batches
from ottla.testing.group_view import all_groups
from ottla.testing.redeliveries import Owner, Redeliveries, SentRecords
from ottla.wire.messages.group_offsets import OffsetCommitResponse, TxnOffsetCommitResponse
from ottla.wire.parts import FileRegion, Records

# The member's session, generation or epoch has ended.
_EXPIRED = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.FENCED_INSTANCE_ID,
    }
)


@dataclass(slots=True)
class Counts:
    """Counts since a broker's start.

    `rebalances`: of groups whose members had partitions. `redeliveries`: records sent again to a
    consumer group, and delivered again to a share group. `expired_commits`: refused because the
    member's session or generation had ended, or removed by `offsets.retention.minutes`.
    """

    rebalances: int = 0
    redeliveries: int = 0
    expired_commits: int = 0


_all: list[Counts] = []


def total() -> tuple[int, int, int]:
    """Return the sums of rebalances, redeliveries and expired commits over all brokers."""
    return (
        sum(one.rebalances for one in _all),
        sum(one.redeliveries for one in _all),
        sum(one.expired_commits for one in _all),
    )


class Tally:
    """Counts the events of one broker. To be used on the broker's event loop."""

    def __init__(self, parts: Parts) -> None:
        self.counts = Counts()
        _all.append(self.counts)
        self._parts = parts
        self._redeliveries = Redeliveries()
        # The members that have a partition; None if a group has changed since.
        self._owners: dict[TopicPartition, dict[str, Owner]] | None = None
        # The latest rebalance of each group that has ended.
        self._ended: dict[str, Flight] = {}
        parts.groups.decided.subscribe(self._on_decision)
        parts.share.sharing.redelivered.subscribe(self._on_redelivered)
        parts.replication.partitions.on_sent = self._on_sent

    def _on_decision(self, decision: GroupDecision) -> None:
        self._owners = None
        for group_id in {note.group_id for note in decision.notes}:
            self._count_rebalance(group_id)
        for reply in decision.replies:
            if isinstance(reply.message, OffsetCommitResponse | TxnOffsetCommitResponse):
                codes = {
                    partition.error_code
                    for topic in reply.message.topics
                    for partition in topic.partitions
                }
                self.counts.expired_commits += not _EXPIRED.isdisjoint(codes)
        if not decision.replies:
            # Without a request, offsets are removed because they or their topics are gone.
            topics = self._parts.cluster.view.image.topics
            self.counts.expired_commits += sum(
                isinstance(record, OffsetRecord)
                and record.committed is None
                and record.topic_partition.topic in topics
                for record in decision.records
            )

    def _count_rebalance(self, group_id: str) -> None:
        flights = self._parts.groups.flights.of(group_id)
        before = self._ended.get(group_id)
        if before in flights:
            flights = flights[flights.index(before) + 1 :]
        for flight in flights:
            if flight.ending in (Ending.STABLE, Ending.EMPTY):
                had_partitions = before is not None and before.partitions > 0
                self.counts.rebalances += had_partitions and flight.ending is Ending.STABLE
                before = self._ended[group_id] = flight

    def _on_redelivered(self, count: int) -> None:
        self.counts.redeliveries += count

    def _on_sent(
        self,
        connection: Connection,
        client_id: str | None,
        partition: Partition,
        offset: int,
        records: Records,
    ) -> None:
        name = partition.topic_partition
        if self._owners is None:
            self._owners = self._owners_now()
        owners = self._owners.get(name)
        if owners:
            host = f"/{connection.peer_host}"
            sent = SentRecords(name, client_id or "", host, offset, _end_of(records))
            self.counts.redeliveries += self._redeliveries.on_sent(connection, sent, owners)

    def _owners_now(self) -> dict[TopicPartition, dict[str, Owner]]:
        owners: dict[TopicPartition, dict[str, Owner]] = {}
        for group in all_groups(self._parts):
            if group.is_share:
                continue
            for member_id, member in group.members.items():
                for name in member.partitions:
                    owners.setdefault(name, {})[group.group_id] = Owner(
                        group.group_id,
                        member_id,
                        member.client_id,
                        member.host,
                        group.positions.get(name),
                    )
        return owners


def _end_of(records: Records) -> int:
    """Return the offset after the last one of whole batches."""
    if isinstance(records, FileRegion):
        records = system.pread(records.fd, records.size, records.position)
    assert isinstance(records, bytes | bytearray | memoryview), "fetches are not answered in pieces"
    return max(header.last_offset for _, header in batches(records)) + 1
