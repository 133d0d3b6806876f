"""The ledger of offsets of Ottla's brokers: what became of each offset of a range."""

from collections.abc import Mapping
from dataclasses import dataclass

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.client.admin.calls import Calls
from ottla.client.errors import UnknownTopic, UnsupportedByBroker, check
from ottla.ledger.history import Cause
from ottla.wire.messages.offset_ledger import OffsetLedgerRequest, OffsetLedgerResponse

_HIGH_WATERMARK = -1


@dataclass(frozen=True, slots=True)
class CompactedBy:
    """`count` offsets went in pass `number` of the leader's replica, at `at_ms`.

    With `since` below `number` in one of those passes. 0: before the replica was copied from its
    leader; -1: before a ledger was kept.
    """

    number: int
    since: int
    at_ms: int
    count: int


@dataclass(frozen=True, slots=True)
class DeletedBy:
    """[start, end) was deleted from `first_ms` to `last_ms`; `counts` by cause."""

    start: int
    end: int
    counts: Mapping[Cause, int]
    first_ms: int
    last_ms: int


@dataclass(frozen=True, slots=True)
class LostBy:
    """[start, end) was committed, and then lost with the election of `leader_epoch`."""

    start: int
    end: int
    leader_epoch: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class OffsetAccount:
    """What became of the offsets [start, end), told by the leader. Times in ms since 1970.

    The terms from `data` to `unexplained` add up to end - start. `replaced` is no term: so many
    were lost once, and are other records now.
    """

    name: TopicPartition
    broker_id: int
    leader_epoch: int
    start: int
    end: int
    log_start_offset: int
    high_watermark: int
    log_end_offset: int
    data: int
    control: int
    aborted: int
    undecided: int
    compacted: int
    deleted: int
    lost: int
    unexplained: int
    replaced: int
    compacted_by: tuple[CompactedBy, ...]
    deleted_by: tuple[DeletedBy, ...]
    lost_by: tuple[LostBy, ...]


class LedgerCalls(Calls):
    """Calls about the ledger of offsets."""

    async def offset_account(
        self, partition: TopicPartition, start: int = 0, end: int | None = None
    ) -> OffsetAccount:
        """What became of the offsets [start, end) of `partition`; up to the high watermark.

        Raises UnknownTopic, ConnectionFailed, OffsetOutOfRange behind all that the log ever held,
        UnsupportedByBroker where the leader is no Ottla.
        """
        request = OffsetLedgerRequest(
            topic=partition.topic,
            partition=partition.partition,
            start=start,
            end=_HIGH_WATERMARK if end is None else end,
        )

        async def once() -> OffsetLedgerResponse:
            view = await self.cluster.topic(partition.topic)
            if not 0 <= partition.partition < len(view.partitions):
                raise UnknownTopic(
                    f"topic {partition.topic!r} has partitions 0 to {len(view.partitions) - 1}, "
                    f"not {partition.partition}"
                )
            leader = view.partitions[partition.partition].leader
            if leader < 0:
                check(ErrorCode.LEADER_NOT_AVAILABLE, f"account for {partition}")
            try:
                answer = await self.cluster.ask(leader, request, OffsetLedgerResponse)
            except UnsupportedByBroker:
                raise UnsupportedByBroker(
                    f"broker {leader} keeps no ledger of offsets: it is no Ottla, or an older one"
                ) from None
            check(answer.error_code, f"account for {partition}", answer.error_message)
            return answer

        return account_of(partition, await self.retried(once))


def account_of(name: TopicPartition, answer: OffsetLedgerResponse) -> OffsetAccount:
    """A broker's answer as a value."""
    return OffsetAccount(
        name,
        answer.broker_id,
        answer.leader_epoch,
        answer.start,
        answer.end,
        answer.log_start_offset,
        answer.high_watermark,
        answer.log_end_offset,
        answer.data,
        answer.control,
        answer.aborted,
        answer.undecided,
        answer.compacted,
        answer.deleted,
        answer.lost,
        answer.unexplained,
        answer.replaced,
        tuple(
            CompactedBy(one.pass_number, one.since, one.at_ms, one.count)
            for one in answer.compacted_by
        ),
        tuple(
            DeletedBy(
                one.start,
                one.end,
                {Cause(n): count for n, count in zip(one.causes, one.counts, strict=True)},
                one.first_ms,
                one.last_ms,
            )
            for one in answer.deleted_by
        ),
        tuple(LostBy(one.start, one.end, one.leader_epoch, one.at_ms) for one in answer.lost_by),
    )
