"""A producer's transactions: records become visible together, with their source's offsets."""

import contextlib
from collections.abc import AsyncIterator, Mapping

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.common.arguments import checks_calls
from ottla.client.common.errors import ClientError
from ottla.client.connection.coordinator import GroupMetadata, OffsetAndMetadata
from ottla.client.producer.delivery import Delivery
from ottla.client.producer.sender import Sender
from ottla.client.producer.transaction_state import Phase, Transactions

Offsets = Mapping[TopicPartition, OffsetAndMetadata | int]


@checks_calls()
class Transactional:
    """The calls of a `Producer` that has a transactional id.

    Of all producers with one `transactional_id`, only the last to begin a transaction, or to call
    `init_transactions`, can continue; other producers get ProducerFenced, and are then unusable.
    After a TransactionFailed (or any other error within a transaction), call `abort_transaction`
    and repeat the transaction.
    """

    _transactions: Transactions | None
    _sender: Sender
    _failed: list[Delivery]

    def _check_open(self) -> None:
        raise NotImplementedError

    async def _settle_all(self) -> None:
        raise NotImplementedError

    def _ongoing(self) -> Transactions:
        self._check_open()
        if self._transactions is None:
            raise ClientError(
                ErrorCode.INVALID_REQUEST,
                'this producer has no transactions; write Producer("host:9092",'
                ' transactional_id="…")',
            )
        return self._transactions

    async def init_transactions(self) -> None:
        """Take over the transactional id; another producer's open transaction is aborted.

        Without this call, the first `begin_transaction` does it.
        """
        await self._ongoing().initialize()

    async def begin_transaction(self) -> None:
        """Open a transaction. All records sent from now on belong to it."""
        transactions = self._ongoing()
        if transactions.phase is Phase.NEW:
            await transactions.initialize()
        transactions.begin()

    async def send_offsets_to_transaction(
        self, offsets: Offsets, group: GroupMetadata | str
    ) -> None:
        """Commit consumed offsets with the transaction: for each partition the next offset.

        `group` is the consumer's `group_metadata()`, so that a member whose partitions were
        reassigned is refused (CommitFailed); or the name of a group without members.
        """
        transactions = self._ongoing()
        entries = {
            partition: entry if isinstance(entry, OffsetAndMetadata) else OffsetAndMetadata(entry)
            for partition, entry in offsets.items()
        }
        group = GroupMetadata(group) if isinstance(group, str) else group
        await transactions.add_offsets(entries, group)

    async def commit_transaction(self) -> None:
        """Send the waiting records, then make the whole transaction visible.

        Raises TransactionFailed if it can only be aborted, ProducerFenced; RequestTimedOut or
        ConnectionFailed if the outcome is unknown: call it again to find out.
        """
        transactions = self._ongoing()
        if transactions.phase is not Phase.COMMITTING:
            transactions.check_open()
            await self._settle_all()
        # The error of the transaction covers undelivered records.
        self._failed.clear()
        transactions.start_commit()
        await transactions.end()

    async def abort_transaction(self) -> None:
        """Abort: none of the transaction's records becomes visible. Raises ProducerFenced."""
        transactions = self._ongoing()
        transactions.start_abort()
        self._sender.drop_unsent(ErrorCode.TRANSACTION_ABORTABLE, "the transaction was aborted")
        await self._settle_all()
        self._failed.clear()
        await transactions.end()

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """`async with producer.transaction():` commits at its end, and aborts after an error."""
        await self.begin_transaction()
        try:
            yield
            await self.commit_transaction()
        except BaseException:
            # Fenced, or no broker answers; the first error is more informative.
            with contextlib.suppress(OttlaError):
                await self.abort_transaction()
            raise

    async def _abort_open(self) -> None:
        """Before closing, abort the open transaction, and ignore its undelivered records."""
        if self._transactions is None:
            return
        if self._transactions.phase is Phase.OPEN:
            with contextlib.suppress(OttlaError):
                await self.abort_transaction()
        # These records belonged to the aborted transaction.
        self._failed.clear()
