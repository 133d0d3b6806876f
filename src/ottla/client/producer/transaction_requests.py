"""A transactional producer's requests to coordinators, retried until done or refused."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition, by_topic
from ottla.client.common.errors import (
    ClientError,
    CommitFailed,
    ConnectionFailed,
    Needs,
    ProducerFenced,
    RequestTimedOut,
    TransactionFailed,
    code_of,
    refused,
)
from ottla.client.connection.cluster import TRANSACTIONAL_ID, Cluster
from ottla.client.connection.coordinator import (
    LOST,
    MOVED,
    Coordinator,
    GroupMetadata,
    OffsetAndMetadata,
    offset_topics,
)
from ottla.client.producer.options import ProducerOptions
from ottla.wire.api import ApiKey
from ottla.wire.messages.group_offsets import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from ottla.wire.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from ottla.wire.notation import Message

Response = TypeVar("Response")

# The markers of the last transaction are written within moments.
SOON_S = 0.02
FENCED = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
_FEATURE = "transaction.version"
# The last versions in which clients add partitions, and the epoch is kept.
_ADD_PARTITIONS_V1, _END_V1, _OFFSETS_V1 = 3, 4, 4


class Identity(NamedTuple):
    """A producer's transactional id, producer id and epoch."""

    producer_id: int = -1
    epoch: int = -1


class TransactionRequests:
    """The requests of one transactional id.

    All raise ProducerFenced; RequestTimedOut and ConnectionFailed if no broker answered in
    `delivery_timeout_ms`; TransactionFailed if the coordinator requires an abort; BrokerRefused.
    """

    def __init__(self, cluster: Cluster, options: ProducerOptions) -> None:
        self._cluster = cluster
        self._options = options
        self.transactional_id = options["transactional_id"] or ""
        self._coordinator = Coordinator(cluster, self.transactional_id, TRANSACTIONAL_ID)
        self._groups: dict[str, Coordinator] = {}
        # Whether brokers add partitions by themselves, and each transaction raises the epoch.
        self.is_v2 = False

    async def take_epoch(self, last: Identity, doing: str) -> Identity:
        """Request a new epoch, which fences the previous producer with this transactional id.

        If `last` names a producer id, the coordinator refuses unless it is the current producer.
        """
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self._options["transaction_timeout_ms"],
            producer_id=last.producer_id,
            producer_epoch=last.epoch,
        )
        answer = await self._ask(self._coordinator, request, InitProducerIdResponse, doing)
        connection = await self._coordinator.connection()
        version_max = self._options["transaction_version_max"]
        version = min(version_max, connection.features.get(_FEATURE, 0))
        self.is_v2 = version >= 2 and connection.version(ApiKey.END_TXN) > _END_V1
        return Identity(answer.producer_id, answer.producer_epoch)

    async def add_partitions(self, me: Identity, partitions: list[TopicPartition]) -> None:
        """Add partitions to the transaction, unless the brokers do that themselves."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=me.producer_id,
            v3_and_below_producer_epoch=me.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=topic, partitions=numbers)
                for topic, numbers in by_topic(partitions).items()
            ],
        )
        doing = f"add {', '.join(map(str, partitions))} to the transaction"
        needed = [Needs("write", "topic", one.topic) for one in partitions[:1]]
        await self._ask(
            self._coordinator,
            request,
            AddPartitionsToTxnResponse,
            doing,
            _ADD_PARTITIONS_V1,
            needed,
        )

    async def add_offsets(
        self,
        me: Identity,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group: GroupMetadata,
    ) -> None:
        """Commit offsets with the transaction. Raises CommitFailed if the group has rebalanced."""
        doing = f"commit offsets of group {group.group_id!r} with the transaction"
        needed = [Needs("read", "group", group.group_id)]
        needed += [Needs("read", "topic", one.topic) for one in offsets]
        if not self.is_v2:
            request = AddOffsetsToTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=me.producer_id,
                producer_epoch=me.epoch,
                group_id=group.group_id,
            )
            await self._ask(
                self._coordinator, request, AddOffsetsToTxnResponse, doing, needed=needed
            )
        coordinator = self._groups.get(group.group_id)
        if coordinator is None:
            coordinator = Coordinator(self._cluster, group.group_id)
            self._groups[group.group_id] = coordinator
        commit = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group.group_id,
            producer_id=me.producer_id,
            producer_epoch=me.epoch,
            generation_id=group.generation,
            member_id=group.member_id,
            group_instance_id=group.instance_id,
            topics=offset_topics(
                offsets, TxnOffsetCommitRequestTopic, TxnOffsetCommitRequestPartition
            ),
        )
        at_most = None if self.is_v2 else _OFFSETS_V1
        await self._ask(coordinator, commit, TxnOffsetCommitResponse, doing, at_most, needed)

    async def end(self, me: Identity, *, committed: bool) -> Identity:
        """Commit or abort; return the producer's new identity."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=me.producer_id,
            producer_epoch=me.epoch,
            committed=committed,
        )
        doing = f"{'commit' if committed else 'abort'} the transaction"
        at_most = None if self.is_v2 else _END_V1
        answer = await self._ask(self._coordinator, request, EndTxnResponse, doing, at_most)
        if answer.producer_id < 0:
            return me
        return Identity(answer.producer_id, answer.producer_epoch)

    async def _ask(
        self,
        coordinator: Coordinator,
        request: Message,
        response_type: type[Response],
        doing: str,
        at_most: int | None = None,
        needed: Iterable[Needs] = (),
    ) -> Response:
        deadline_s = self._cluster.deadline_s()
        attempt = 0
        while True:
            code = ErrorCode.NETWORK_EXCEPTION
            try:
                answer = await coordinator.ask(request, response_type, at_most=at_most)
            except (ConnectionFailed, RequestTimedOut):
                if self._cluster.now_s() >= deadline_s:
                    raise
            else:
                code = _worst(answer)
                if code is ErrorCode.NONE:
                    return answer
                if not code.retriable or self._cluster.now_s() >= deadline_s:
                    raise self._error(
                        code,
                        doing,
                        [*needed, Needs("write", "transactional-id", self.transactional_id)],
                    )
                if code in MOVED:
                    coordinator.moved()
            if code is ErrorCode.CONCURRENT_TRANSACTIONS:
                await asyncio.sleep(SOON_S)
            else:
                await self._cluster.pause(attempt)
                attempt += 1

    def _error(self, code: ErrorCode, doing: str, needed: Iterable[Needs]) -> ClientError:
        if code in FENCED:
            return ProducerFenced(code, self.transactional_id, doing)
        if code in LOST or code is ErrorCode.REBALANCE_IN_PROGRESS:
            return CommitFailed(
                code,
                "offsets were not added to the transaction: the group has moved on and its "
                "partitions are with other members; abort, and poll again",
            )
        if code is ErrorCode.TRANSACTION_ABORTABLE:
            return TransactionFailed(
                code, f"the coordinator refused to {doing}; abort it, then do it again"
            )
        return refused(code, doing, None, needed)


def _worst(answer: Any) -> ErrorCode:
    """Return an answer's most important error: of the whole, else a permanent one, else any."""
    numbers = [getattr(answer, "error_code", 0)]
    for topic in getattr(answer, "results_by_topic_v3_and_below", ()):
        numbers += [part.partition_error_code for part in topic.results_by_partition]
    for topic in getattr(answer, "topics", ()):
        numbers += [part.error_code for part in topic.partitions]
    codes = [code_of(number) for number in numbers if number]
    # Entries that were not tried only repeat that another entry failed.
    codes = [code for code in codes if code is not ErrorCode.OPERATION_NOT_ATTEMPTED] or codes
    lasting = [code for code in codes if not code.retriable]
    return (lasting or codes or [ErrorCode.NONE])[0]
