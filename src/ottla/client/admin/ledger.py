"""The ledger of offsets of Ottla's brokers: what became of each offset of a range."""

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.client.account import OffsetAccount, account_of
from ottla.client.admin.calls import Calls
from ottla.client.errors import UnknownTopic, UnsupportedByBroker, check
from ottla.wire.messages.offset_ledger import OffsetLedgerRequest, OffsetLedgerResponse

_HIGH_WATERMARK = -1


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
