"""The transactional producer as plain calls."""

import contextlib
from collections.abc import Callable, Iterable, Iterator

from ottla.base.errors import OttlaError
from ottla.client.producer.delivery import Delivery
from ottla.client.producer.options import ProducerOptions
from ottla.client.producer.queues import Headers
from ottla.client.sync.producer import Producer
from ottla.client.transactions.group_metadata import GroupMetadata
from ottla.client.transactions.producer import Offsets
from ottla.client.transactions.producer import (
    TransactionalProducer as AsyncTransactionalProducer,
)


class TransactionalProducer(Producer):
    """`ottla.client.TransactionalProducer` as plain calls; `with producer.transaction():`."""

    def __init__(
        self,
        bootstrap: str | Iterable[str],
        transactional_id: str,
        options: ProducerOptions | None = None,
        *,
        transaction_timeout_ms: int = 60_000,
        transaction_version_max: int = 2,
        on_delivery: Callable[[Delivery], None] | None = None,
    ) -> None:
        def make() -> AsyncTransactionalProducer:
            self._transactional = AsyncTransactionalProducer(
                bootstrap,
                transactional_id,
                options,
                transaction_timeout_ms=transaction_timeout_ms,
                transaction_version_max=transaction_version_max,
                on_delivery=on_delivery,
            )
            return self._transactional

        self._start(make)

    def init_transactions(self) -> None:
        """Take over the transactional id, once: what another producer has open is aborted."""
        self._thread.call(self._transactional.init_transactions())

    def begin_transaction(self) -> None:
        """Open a transaction. What is sent from now on belongs to it."""
        self._thread.call(self._transactional.begin_transaction())

    def send_offsets(self, offsets: Offsets, group: GroupMetadata | str) -> None:
        """Commit what was consumed with the transaction: for each partition the next offset."""
        self._thread.call(self._transactional.send_offsets(offsets, group))

    def commit_transaction(self) -> None:
        """Make all of the transaction visible. See the asyncio form for what it raises."""
        self._thread.call(self._transactional.commit_transaction())

    def abort_transaction(self) -> None:
        """Let nothing of the transaction be visible. Raises ProducerFenced."""
        self._thread.call(self._transactional.abort_transaction())

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Commits at its end, and aborts after an error."""
        self.begin_transaction()
        try:
            yield
            self.commit_transaction()
        except BaseException:
            with contextlib.suppress(OttlaError):
                self.abort_transaction()
            raise

    # Hot: see `Producer.send`.
    def send(
        self,
        topic: str,
        value: bytes | str | None,
        key: bytes | str | None = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
    ) -> Delivery:
        """As `Producer.send`. Raises ClientError where no transaction is open."""
        self._transactional.transactions.check_open()
        return super().send(
            topic, value, key, partition=partition, timestamp_ms=timestamp_ms, headers=headers
        )
