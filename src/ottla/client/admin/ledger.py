"""The ledger of offsets of Ottla's brokers: what became of each offset of a range."""

from ottla.base.ids import TopicPartition
from ottla.client.account import OffsetAccount, account_of
from ottla.client.admin.calls import Calls
from ottla.client.errors import check
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
            what = f"account for {partition}"
            leader = await self.leader_of(partition, what)
            answer = await self.ask_ottla(
                leader, request, OffsetLedgerResponse, "keeps no ledger of offsets"
            )
            check(answer.error_code, what, answer.error_message)
            return answer

        return account_of(partition, await self.retried(once))
