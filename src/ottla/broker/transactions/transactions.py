"""All transactional ids that this broker coordinates, in the partitions it leads."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId, TopicPartition
from ottla.base.settings import BrokerSettings
from ottla.broker.coordinating import Shards, ShardsStatus, Ticket
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.produce.producer_ids import ProducerIdBlocks
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.view import ClusterView
from ottla.broker.topics.internal_topics import TRANSACTION_STATE
from ottla.broker.transactions.marker_sender import MarkerSender
from ottla.broker.transactions.shard import Command, TransactionShard, Upkeep
from ottla.transaction.coordinator import TransactionCoordinator, TransactionSettings
from ottla.transaction.transaction import (
    EPOCH_PER_TRANSACTION,
    Answered,
    ProducerIdentity,
    TransactionDecision,
)


class TransactionAnswer:
    """Calls `on_answer` with the answer of a command; `failed` turns an error into one."""

    __slots__ = ("_failed", "_on_answer")

    # The answer's type depends on the command.
    def __init__(
        self, on_answer: Callable[[Any], None], failed: Callable[[ErrorCode], Any]
    ) -> None:
        self._on_answer = on_answer
        self._failed = failed

    def give(self, message: Any) -> None:
        self._on_answer(message)

    def fail(self, code: ErrorCode) -> None:
        self._on_answer(self._failed(code))


def reply_with(
    request: RequestContext, build: Callable[[Any], Any], failed: Callable[[ErrorCode], Any]
) -> TransactionAnswer:
    """A ticket whose answer is the request's response, built by `build`."""
    return TransactionAnswer(lambda message: request.reply(build(message)), failed)


def as_version_knows(code: ErrorCode, version: int, *, fenced_from: int) -> ErrorCode:
    """The code, with PRODUCER_FENCED as INVALID_PRODUCER_EPOCH before `fenced_from` (KIP-588)."""
    if code is ErrorCode.PRODUCER_FENCED and version < fenced_from:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


# A code for each partition.
Codes = Mapping[TopicPartition, ErrorCode]
# A Command that also receives a new producer id, or None.
CommandWithId = Callable[[TransactionCoordinator, Any, int | None, int], TransactionDecision]

# How long a client's request waits for the markers of the previous transaction.
PATIENCE_MS = 1_000
# How long an answer waits for its record to be committed.
_COMMIT_TIMEOUT_MS = 30_000


class Transactions:
    """Runs each command on the shard that holds its transactional id."""

    def __init__(
        self,
        view: ClusterView,
        runtime: Runtime,
        settings: BrokerSettings,
        partitions: Partitions,
        producer_ids: ProducerIdBlocks,
        markers: MarkerSender,
    ) -> None:
        self._runtime = runtime
        self._producer_ids = producer_ids
        self._markers = markers
        self._broker_settings = settings
        self._settings = _transaction_settings(settings)
        self._load_bytes = settings.integer("transaction.state.log.load.buffer.size")
        self._verify_patience_ms = settings.integer("add.partitions.to.txn.retry.backoff.max.ms")
        self._shards = Shards(TRANSACTION_STATE, view, runtime, partitions, self._shard_of)
        # Whether the timers run; they start with the first shard.
        self._has_timers = False

    def start(self) -> None:
        """Load the transactions from disk."""
        self._shards.take_up()

    def on_role(self, partition: Partition) -> None:
        """Load or release the ids of a partition whose leader has changed."""
        self._shards.on_role(partition)

    def close(self) -> None:
        """The broker stops: answer waiting requests with NOT_COORDINATOR."""
        self._shards.close()

    def status(self) -> ShardsStatus:
        """The partitions of `__transaction_state` that are led here."""
        return self._shards.status()

    def partition_index(self, transactional_id: str) -> int | None:
        """The id's partition of `__transaction_state`; None while there is no topic."""
        return self._shards.index_of(transactional_id)

    def coordinator_of(self, transactional_id: str) -> BrokerId | None:
        """The live broker that coordinates the id; None while there is none."""
        return self._shards.leader_of(transactional_id)

    def shard(self, transactional_id: str) -> TransactionShard:
        """The shard of an id, loaded or not. Raises OttlaError (NOT_COORDINATOR)."""
        return self._shards.find(transactional_id, "transactional id")

    def run(
        self,
        transactional_id: str,
        ticket: Ticket,
        command: Command,
        *,
        patience_ms: int = PATIENCE_MS,
    ) -> None:
        """Run a command on an id; see `TransactionShard.run`. An error is given as the answer."""
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
        """As `run`, for a command that may need a new producer id."""
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

        For the leaders of partitions, at this broker or another (KIP-890).
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

        ticket = TransactionAnswer(answer, Answered)
        self.run(transactional_id, ticket, command, patience_ms=self._verify_patience_ms)

    def shards(self) -> Iterator[TransactionShard]:
        """Every shard, loading ones included."""
        return iter(self._shards)

    def _shard_of(self, partition: Partition) -> TransactionShard:
        if not self._has_timers:
            self._start_timers()
        return TransactionShard(
            partition,
            self._settings,
            self._runtime.clock,
            self._runtime.purgatory,
            self._markers.send,
            commit_timeout_ms=_COMMIT_TIMEOUT_MS,
            load_bytes=self._load_bytes,
        )

    def _start_timers(self) -> None:
        """Abort transactions past their timeout, and expire unused ids, at intervals."""
        self._has_timers = True
        settings = self._broker_settings
        self._every(
            settings.integer("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
            TransactionCoordinator.abort_overdue,
        )
        self._every(
            settings.integer("transaction.remove.expired.transaction.cleanup.interval.ms"),
            TransactionCoordinator.forget_unused,
        )

    def _every(self, interval_ms: int, upkeep: Upkeep) -> None:
        purgatory = self._runtime.purgatory

        def run() -> None:
            if self._shards.closed:
                return
            for shard in self._shards:
                shard.upkeep(upkeep)
            purgatory.schedule(interval_ms, run)

        purgatory.schedule(interval_ms, run)

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
