"""Verifies with a transaction's coordinator that partitions belong to it, or adds them (KIP-890).

Older clients send AddPartitionsToTxn themselves, and this broker verifies that they did; clients
that know KIP-890 leave it to the leaders of the partitions. Only the first batch of a transaction
in each partition causes a request.
"""

from collections.abc import Callable

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId, TopicPartition, by_topic
from ottla.base.settings import BrokerSettings
from ottla.broker.cluster.links import Links
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.view import ClusterView
from ottla.broker.transactions.transactions import Codes, Transactions
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

    Where this broker is the coordinator it runs the command without a request.
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
        """Give up requests to brokers that have left the cluster with the new image."""
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
        """Verify or add `partitions`; `on_answer` is called with a code for each of them."""
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
