"""A producer whose records become visible together, with the offsets of what they came from."""

import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from dataclasses import replace
from functools import wraps
from inspect import cleandoc
from typing import Any, Concatenate, ParamSpec, TypeVar

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.arguments import checked_options
from ottla.client.checking import checks, checks_awaited
from ottla.client.consumer.partition_state import OffsetAndMetadata
from ottla.client.errors import ClientError
from ottla.client.producer.delivery import Delivery
from ottla.client.producer.options import ProducerOptions, is_idempotent
from ottla.client.producer.producer import Producer
from ottla.client.transactions.group_metadata import GroupMetadata
from ottla.client.transactions.state import Phase, Transactions

Offsets = Mapping[TopicPartition, OffsetAndMetadata | int]

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Method = TypeVar("Method", bound=Callable[..., object])


def with_check(checked: Method) -> Method:
    """Let the documentation of a method that checks for a transaction say so."""
    checked.__doc__ = (
        f"{cleandoc(checked.__doc__ or '')}\n\nRaises ClientError where no transaction is open."
    )
    return checked


def _in_transaction(
    method: Callable[Concatenate[Any, Parameters], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate[Any, Parameters], Coroutine[Any, Any, Result]]:
    """`method`, after a look whether a transaction is open."""

    @wraps(method)
    async def checked(
        self: Any, /, *arguments: Parameters.args, **named: Parameters.kwargs
    ) -> Result:
        self._transactions.check_open()
        return await method(self, *arguments, **named)

    return with_check(checked)


class TransactionalProducer(Producer):
    """A `Producer` that sends within transactions only; readers need `read_committed=True`.

        async with TransactionalProducer("host:9092", "copier-1") as producer:
            await producer.init_transactions()
            async with producer.transaction():
                await producer.send("out", b"...")
                await producer.send_offsets({partition: offset}, consumer.group_metadata())

    Of all producers with one `transactional_id` the last to call `init_transactions` goes on; the
    others get ProducerFenced, and are of no use any more. After a TransactionFailed (or any other
    error within a transaction) `abort_transaction` and do it again. `transaction_timeout_ms`: what
    is open for longer is aborted by the coordinator, and its producer fenced.
    `transaction_version_max`: 1 is as clients did before KIP-890, whatever the cluster offers.
    """

    @checks
    def __init__(
        self,
        bootstrap: str | Iterable[str],
        transactional_id: str,
        options: ProducerOptions | None = None,
        *,
        transaction_timeout_ms: int = 60_000,
        transaction_version_max: int = 2,
        on_delivery: Callable[[Delivery], None] | None = None,
        clock: Clock | None = None,
    ) -> None:
        if not transactional_id:
            raise ClientError(
                ErrorCode.INVALID_REQUEST, "give a transactional_id that is not empty"
            )
        self._transactional_id = transactional_id
        self._transaction_timeout_ms = transaction_timeout_ms
        self._transaction_version_max = transaction_version_max
        # Without idempotence there is no transaction: says so where the options forbid it.
        options = replace(
            checked_options(
                options, ProducerOptions, 'TransactionalProducer("host:9092", "transactional-id")'
            ),
            idempotence=True,
        )
        assert is_idempotent(options)
        super().__init__(bootstrap, options, on_delivery=on_delivery, clock=clock)

    def _make_numbering(self) -> Transactions:
        self._transactions = Transactions(
            self._connections,
            self._transactional_id,
            self._transaction_timeout_ms,
            self._transaction_version_max,
        )
        return self._transactions

    # -- transactions

    async def init_transactions(self) -> None:
        """Take over the transactional id, once: what another producer has open is aborted."""
        self._check_open()
        await self._transactions.initialize()

    async def begin_transaction(self) -> None:
        """Open a transaction. What is sent from now on belongs to it."""
        self._check_open()
        self._transactions.begin()

    @checks_awaited
    async def send_offsets(self, offsets: Offsets, group: GroupMetadata | str) -> None:
        """Commit what was consumed with the transaction: for each partition the next offset.

        `group` is the consumer's `group_metadata()`, so that a member whose partitions have gone
        to another is refused (CommitFailed); or the name of a group without members.
        """
        self._check_open()
        entries = {
            partition: entry if isinstance(entry, OffsetAndMetadata) else OffsetAndMetadata(entry)
            for partition, entry in offsets.items()
        }
        group = GroupMetadata(group) if isinstance(group, str) else group
        await self._transactions.add_offsets(entries, group)

    async def commit_transaction(self) -> None:
        """Send what waits, then make all of the transaction visible.

        Raises TransactionFailed where it can only be aborted, ProducerFenced; RequestTimedOut or
        ConnectionFailed where it is not known whether it is committed: call it again to find out.
        """
        self._check_open()
        transactions = self._transactions
        if transactions.phase is not Phase.COMMITTING:
            transactions.check_open()
            await self._settle_all()
        # The error of the transaction covers records that were not delivered.
        self._failed.clear()
        transactions.start_commit()
        await transactions.end()

    async def abort_transaction(self) -> None:
        """Let nothing of the transaction be visible. Raises ProducerFenced."""
        self._check_open()
        self._transactions.start_abort()
        self._sender.drop_unsent(ErrorCode.TRANSACTION_ABORTABLE, "the transaction was aborted")
        await self._settle_all()
        self._failed.clear()
        await self._transactions.end()

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """`async with producer.transaction():` commits at its end, and aborts after an error."""
        await self.begin_transaction()
        try:
            yield
            await self.commit_transaction()
        except BaseException:
            # Fenced, or no broker answers: the first error says more.
            with contextlib.suppress(OttlaError):
                await self.abort_transaction()
            raise

    # -- sending, within transactions

    send = _in_transaction(Producer.send)
    send_batch = _in_transaction(Producer.send_batch)
    send_prepared = _in_transaction(Producer.send_prepared)

    async def close(self, timeout_ms: int | None = None) -> None:
        """Abort what is open, then end."""
        if not self._closed and self._transactions.phase is Phase.OPEN:
            with contextlib.suppress(OttlaError):
                await self.abort_transaction()
        # What did not arrive belonged to a transaction that is not committed.
        self._failed.clear()
        await super().close(timeout_ms)
