"""The transactional producer as plain calls."""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from ottla.base.errors import OttlaError
from ottla.client.checking import checks
from ottla.client.producer.delivery import Delivery
from ottla.client.producer.options import ProducerOptions
from ottla.client.sync.producer import Producer
from ottla.client.sync.waiting import waits
from ottla.client.transactions.producer import (
    TransactionalProducer as AsyncTransactionalProducer,
)
from ottla.client.transactions.producer import with_check

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def _in_transaction(
    method: Callable[Concatenate[Any, Parameters], Result],
) -> Callable[Concatenate[Any, Parameters], Result]:
    """`method`, after a look whether a transaction is open."""

    @wraps(method)
    def checked(self: Any, /, *arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
        self._transactions.check_open()
        return method(self, *arguments, **named)

    return with_check(checked)


class TransactionalProducer(Producer):
    """`ottla.client.TransactionalProducer` as plain calls; `with producer.transaction():`."""

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
    ) -> None:
        self._start(
            lambda: AsyncTransactionalProducer(
                bootstrap,
                transactional_id,
                options,
                transaction_timeout_ms=transaction_timeout_ms,
                transaction_version_max=transaction_version_max,
                on_delivery=on_delivery,
            )
        )
        assert isinstance(self._twin, AsyncTransactionalProducer)
        self._transactions = self._twin._transactions

    init_transactions = waits(AsyncTransactionalProducer.init_transactions)
    begin_transaction = waits(AsyncTransactionalProducer.begin_transaction)
    send_offsets = waits(AsyncTransactionalProducer.send_offsets)
    commit_transaction = waits(AsyncTransactionalProducer.commit_transaction)
    abort_transaction = waits(AsyncTransactionalProducer.abort_transaction)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """`with producer.transaction():` commits at its end, and aborts after an error."""
        self.begin_transaction()
        try:
            yield
            self.commit_transaction()
        except BaseException:
            with contextlib.suppress(OttlaError):
                self.abort_transaction()
            raise

    # Hot: see `Producer.send`.
    send = _in_transaction(Producer.send)
