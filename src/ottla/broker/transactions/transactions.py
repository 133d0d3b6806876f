"""The transaction coordinator: the partitions of `__transaction_state` that this broker leads."""

from collections.abc import Callable, Mapping
from operator import methodcaller
from typing import Any

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.base.settings import BrokerSettings
from ottla.broker.coordinators import Coordinators, Ticket
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.produce.producer_ids import ProducerIdBlocks
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.view import ClusterView
from ottla.broker.topics.internal_topics import TRANSACTION_STATE
from ottla.broker.transactions.marker_sender import MarkerSender
from ottla.broker.transactions.shard import Command, TransactionShard
from ottla.transaction.coordinator import TransactionCoordinator, TransactionSettings
from ottla.transaction.transaction import (
    EPOCH_PER_TRANSACTION,
    Answered,
    ProducerIdentity,
    TransactionDecision,
)


def reply_with(
    request: RequestContext, build: Callable[[Any], Any], failed: Callable[[ErrorCode], Any]
) -> Ticket:
    """Return a ticket whose answer, converted by `build`, is sent as response to `request`."""
    return Ticket(lambda message: request.reply(build(message)), failed)


def as_version_knows(code: ErrorCode, version: int, *, fenced_from: int) -> ErrorCode:
    """Convert `code` to one that the request's version knows.

    Versions before `fenced_from` have INVALID_PRODUCER_EPOCH instead of PRODUCER_FENCED (KIP-588).
    """
    if code is ErrorCode.PRODUCER_FENCED and version < fenced_from:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


# An error code for each partition.
Codes = Mapping[TopicPartition, ErrorCode]
# A Command that also receives a new producer id, or None.
CommandWithId = Callable[[TransactionCoordinator, Any, int | None, int], TransactionDecision]

# How long a client's request waits for the markers of the previous transaction.
PATIENCE_MS = 1_000
# How long an answer waits for its record to be committed.
_COMMIT_TIMEOUT_MS = 30_000


class Transactions(Coordinators[TransactionShard]):
    """Runs commands in the shard of their transactional id."""

    def __init__(
        self,
        view: ClusterView,
        runtime: Runtime,
        settings: BrokerSettings,
        partitions: Partitions,
        producer_ids: ProducerIdBlocks,
        markers: MarkerSender,
    ) -> None:
        super().__init__(TRANSACTION_STATE, view, runtime, partitions)
        self._producer_ids = producer_ids
        self._markers = markers
        self._broker_settings = settings
        self._settings = _transaction_settings(settings)
        self._load_bytes = settings.integer("transaction.state.log.load.buffer.size")
        self._verify_patience_ms = settings.integer("add.partitions.to.txn.retry.backoff.max.ms")

    def shard(self, transactional_id: str) -> TransactionShard:
        """Return the shard of a transactional id, which may still be loading.

        Raises OttlaError (NOT_COORDINATOR).
        """
        return self.find(transactional_id, "transactional id")

    def run(
        self,
        transactional_id: str,
        ticket: Ticket,
        command: Command,
        *,
        patience_ms: int = PATIENCE_MS,
    ) -> None:
        """Run a command on a transactional id; see `TransactionShard.run`.

        If the shard raises an error, the ticket is answered with its code.
        """
        try:
            shard = self.shard(transactional_id)
            shard.run(transactional_id, ticket, command, patience_ms=patience_ms)
        except OttlaError as error:
            ticket.fail(error.code)

    def run_with_producer_id(
        self,
        transactional_id: str,
        ticket: Ticket,
        command: CommandWithId,
    ) -> None:
        """Run a command like `run`, and pass it a new producer id if it needs one."""
        try:
            needed = self.shard(transactional_id).loaded().needs_producer_id(transactional_id)
        except OttlaError as error:
            ticket.fail(error.code)
            return
        fresh = self._producer_ids.take() if needed else None

        def go_on(fresh: int | None) -> None:
            self.run(
                transactional_id,
                ticket,
                lambda coordinator, asker, now_ms: command(coordinator, asker, fresh, now_ms),
            )

        if needed and fresh is None:
            self._runtime.spawn(self._reserve(go_on, ticket))
        else:
            go_on(fresh)

    def verify_or_add(
        self,
        transactional_id: str,
        identity: ProducerIdentity,
        partitions: frozenset[TopicPartition],
        *,
        adds: bool,
        on_answer: Callable[[Codes], None],
    ) -> None:
        """Add partitions to a transaction coordinated here, or verify that it has them.

        It is called for leaders of partitions, on this broker or another (KIP-890).
        """

        def command(
            coordinator: TransactionCoordinator, ticket: object, now_ms: int
        ) -> TransactionDecision:
            if adds:
                return coordinator.add(
                    ticket, transactional_id, identity, partitions, EPOCH_PER_TRANSACTION, now_ms
                )
            return coordinator.verify(ticket, transactional_id, identity, partitions)

        def answer(message: Answered | Codes) -> None:
            if isinstance(message, Answered):
                message = dict.fromkeys(partitions, message.code)
            on_answer(message)

        ticket = Ticket(answer, Answered)
        self.run(transactional_id, ticket, command, patience_ms=self._verify_patience_ms)

    def new_shard(self, partition: Partition) -> TransactionShard:
        return TransactionShard(
            partition,
            self._settings,
            self._runtime.clock,
            self._runtime.purgatory,
            self._markers.send,
            commit_timeout_ms=_COMMIT_TIMEOUT_MS,
            load_bytes=self._load_bytes,
        )

    def start_timers(self) -> None:
        """Abort transactions past their timeout, and expire unused ids, at intervals."""
        settings = self._broker_settings
        for setting, upkeep in (
            (
                "transaction.abort.timed.out.transaction.cleanup.interval.ms",
                TransactionCoordinator.abort_overdue,
            ),
            (
                "transaction.remove.expired.transaction.cleanup.interval.ms",
                TransactionCoordinator.forget_unused,
            ),
        ):
            self.every(settings.integer(setting), methodcaller("upkeep", upkeep))

    async def _reserve(self, then: Callable[[int], None], ticket: Ticket) -> None:
        try:
            fresh = await self._producer_ids.reserve()
        except OttlaError as error:
            ticket.fail(error.code)
            return
        then(fresh)


def _transaction_settings(settings: BrokerSettings) -> TransactionSettings:
    return TransactionSettings(
        max_timeout_ms=settings.integer("transaction.max.timeout.ms"),
        id_expiration_ms=settings.integer("transactional.id.expiration.ms"),
    )
