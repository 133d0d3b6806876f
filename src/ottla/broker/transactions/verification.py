"""Verifies, before a transaction's first batch in a partition, that the transaction is open.

The answer is valid until a marker is appended to the partition (KIP-890). A marker between request
and answer may have ended this transaction, so the coordinator is then asked again.
"""

from collections.abc import Callable
from typing import NamedTuple

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId, TopicPartition, by_topic
from ottla.base.settings import BrokerSettings
from ottla.broker.cluster.links import Links
from ottla.broker.partitions.partition import Partition
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.view import ClusterView
from ottla.broker.transactions.transactions import Codes, Transactions
from ottla.storage.producers.state import Guard
from ottla.transaction.transaction import ProducerIdentity
from ottla.wire.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

_TIMEOUT_MS = 10_000


class AddPartitionsSender:
    """Sends AddPartitionsToTxn to coordinators on behalf of this broker's partitions.

    If this broker is the coordinator, the command runs without a request.
    """

    def __init__(
        self,
        view: ClusterView,
        runtime: Runtime,
        settings: BrokerSettings,
        transactions: Transactions,
        links: Links,
    ) -> None:
        self._view = view
        self._runtime = runtime
        self._transactions = transactions
        self._links = links
        self._verifies = settings.flag("transaction.partition.verification.enable")

    def on_image(self) -> None:
        """Give up requests to brokers that are not in the new image."""
        self._links.keep_only(self._view.image.brokers)

    def close(self) -> None:
        """Close, because the broker stops."""
        self._links.close()

    def send(
        self,
        transactional_id: str,
        identity: ProducerIdentity,
        partitions: frozenset[TopicPartition],
        *,
        adds: bool,
        on_answer: Callable[[Codes], None],
    ) -> None:
        """Verify or add `partitions`; `on_answer` is called with an error code for each."""
        if not adds and not self._verifies:
            on_answer(dict.fromkeys(partitions, ErrorCode.NONE))
            return
        leader = self._transactions.coordinator_of(transactional_id)
        if leader is None:
            on_answer(dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE))
        elif leader == self._view.broker_id:
            self._transactions.verify_or_add(
                transactional_id, identity, partitions, adds=adds, on_answer=on_answer
            )
        else:
            self._runtime.spawn(
                self._request(leader, transactional_id, identity, partitions, adds, on_answer)
            )

    async def _request(
        self,
        leader: BrokerId,
        transactional_id: str,
        identity: ProducerIdentity,
        partitions: frozenset[TopicPartition],
        adds: bool,
        on_answer: Callable[[Codes], None],
    ) -> None:
        topics = by_topic(sorted(partitions))
        transaction = AddPartitionsToTxnTransaction(
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
            response: AddPartitionsToTxnResponse = await self._links.request(
                leader,
                AddPartitionsToTxnRequest(transactions=[transaction]),
                timeout_ms=_TIMEOUT_MS,
            )
        except OttlaError:
            on_answer(dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION))
            return
        if response.error_code:
            on_answer(dict.fromkeys(partitions, ErrorCode(response.error_code)))
            return
        on_answer(
            {
                TopicPartition(topic.name, each.partition_index): ErrorCode(
                    each.partition_error_code
                )
                for result in response.results_by_transaction
                for topic in result.topic_results
                for each in topic.results_by_partition
            }
        )


# At most one marker is expected between request and answer: that of the previous transaction.
_ATTEMPTS_MAX = 3

OnAnswer = Callable[[Guard | ErrorCode], None]


class _Key(NamedTuple):
    """Identifies a verification; `adds` is True if it adds the partition to the transaction."""

    partition: Partition
    transactional_id: str
    identity: ProducerIdentity
    adds: bool


class Verifications:
    """All verifications in flight.

    A later batch of the same transaction and partition waits for the same answer, so that the
    batches of a producer are appended in the order of arrival.
    """

    def __init__(self, sender: AddPartitionsSender) -> None:
        self._sender = sender
        self._waiting: dict[_Key, list[OnAnswer]] = {}

    def __len__(self) -> int:
        """The number of verifications in flight."""
        return len(self._waiting)

    def is_needed(
        self, partition: Partition, transactional_id: str, identity: ProducerIdentity, *, adds: bool
    ) -> bool:
        """Whether to call `verify`: True unless the transaction has records in the partition."""
        key = _Key(partition, transactional_id, identity, adds)
        return key in self._waiting or not partition.log.producers.is_open(*identity)

    def verify(
        self,
        partition: Partition,
        transactional_id: str,
        identity: ProducerIdentity,
        *,
        adds: bool,
        on_answer: OnAnswer,
    ) -> None:
        """Verify a transaction; `on_answer` gets the guard for the append, or an error code."""
        key = _Key(partition, transactional_id, identity, adds)
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.append(on_answer)
        else:
            self._waiting[key] = [on_answer]
            self._send(key, 1)

    def _send(self, key: _Key, attempt: int) -> None:
        name = key.partition.topic_partition
        producer_id = key.identity.producer_id
        guard = key.partition.log.producers.guard(producer_id)

        def on_codes(codes: Codes) -> None:
            code = codes.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if code is not ErrorCode.NONE:
                self._answer(key, code)
            elif (
                key.partition.log.producers.is_guarded(producer_id, guard)
                or attempt == _ATTEMPTS_MAX
            ):
                self._answer(key, guard)
            else:
                self._send(key, attempt + 1)

        self._sender.send(
            key.transactional_id,
            key.identity,
            frozenset({name}),
            adds=key.adds,
            on_answer=on_codes,
        )

    def _answer(self, key: _Key, answer: Guard | ErrorCode) -> None:
        for on_answer in self._waiting.pop(key):
            on_answer(answer)
