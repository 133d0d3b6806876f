"""Asks the coordinator of a transaction whether partitions belong to it, or adds them (KIP-890).

Older clients add partitions themselves, and this broker makes sure that they did; those that know
KIP-890 leave it to the leaders of the partitions. Only the first batch in each partition asks.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId, TopicPartition, by_topic
from ottla.broker.topics.internal_topics import TRANSACTION_STATE
from ottla.broker.transactions.answer import Answer
from ottla.broker.transactions.links import Links
from ottla.transaction.coordinator import Coordinator
from ottla.transaction.transaction import EPOCH_PER_TRANSACTION, Identity
from ottla.transaction.turn import Answered, Decision
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker
    from ottla.broker.transactions.transactions import Transactions

Codes = Mapping[TopicPartition, ErrorCode]
_TIMEOUT_MS = 10_000


class Enlisting:
    """The questions of this broker's partitions."""

    def __init__(self, broker: "Broker", transactions: "Transactions", links: Links) -> None:
        self._broker = broker
        self._transactions = transactions
        self.links = links
        settings = broker.settings
        self._patience_ms = settings.integer("add.partitions.to.txn.retry.backoff.max.ms")
        self._verifies = settings.flag("transaction.partition.verification.enable")

    def ask(
        self,
        transactional_id: str,
        identity: Identity,
        partitions: frozenset[TopicPartition],
        *,
        adds: bool,
        on_answer: Callable[[Codes], None],
    ) -> None:
        """Find out about `partitions`, or add them; `on_answer` is told of each of them."""
        if not adds and not self._verifies:
            on_answer(dict.fromkeys(partitions, ErrorCode.NONE))
            return
        leader = self._leader(transactional_id)
        if leader is None:
            on_answer(dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE))
        elif leader == self._broker.broker_id:
            self.answer(transactional_id, identity, partitions, adds=adds, on_answer=on_answer)
        else:
            self._broker.spawn(
                self._ask(leader, transactional_id, identity, partitions, adds, on_answer)
            )

    def answer(
        self,
        transactional_id: str,
        identity: Identity,
        partitions: frozenset[TopicPartition],
        *,
        adds: bool,
        on_answer: Callable[[Codes], None],
    ) -> None:
        """Answer such a question, of this broker or of another: here is the coordinator."""

        def command(coordinator: Coordinator, ticket: object, now_ms: int) -> Decision:
            if adds:
                return coordinator.add(
                    ticket, transactional_id, identity, partitions, EPOCH_PER_TRANSACTION, now_ms
                )
            return coordinator.verify(ticket, transactional_id, identity, partitions)

        def told(message: Answered | Codes) -> None:
            if isinstance(message, Answered):
                message = dict.fromkeys(partitions, message.code)
            on_answer(message)

        ticket = Answer(told, Answered)
        self._transactions.run(transactional_id, ticket, command, patience_ms=self._patience_ms)

    def _leader(self, transactional_id: str) -> BrokerId | None:
        index = self._transactions.partition_index(transactional_id)
        if index is None:
            return None
        state = self._broker.image.partition(TRANSACTION_STATE, index)
        if state is None or state.leader not in self._broker.image.brokers:
            return None
        return state.leader

    async def _ask(
        self,
        leader: BrokerId,
        transactional_id: str,
        identity: Identity,
        partitions: frozenset[TopicPartition],
        adds: bool,
        on_answer: Callable[[Codes], None],
    ) -> None:
        topics = by_topic(sorted(partitions))
        question = AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            verify_only=not adds,
            topics=[
                AddPartitionsToTxnTopic(name=topic, partitions=indexes)
                for topic, indexes in topics.items()
            ],
        )
        try:
            answer: AddPartitionsToTxnResponse = await self.links.request(
                leader,
                AddPartitionsToTxnRequest(transactions=[question]),
                timeout_ms=_TIMEOUT_MS,
            )
        except OttlaError:
            on_answer(dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION))
            return
        if answer.error_code:
            on_answer(dict.fromkeys(partitions, ErrorCode(answer.error_code)))
            return
        on_answer(
            {
                TopicPartition(topic.name, each.partition_index): ErrorCode(
                    each.partition_error_code
                )
                for result in answer.results_by_transaction
                for topic in result.topic_results
                for each in topic.results_by_partition
            }
        )
