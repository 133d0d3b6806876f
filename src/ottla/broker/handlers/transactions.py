"""The handlers by which producers begin and end transactions."""

from dataclasses import dataclass
from functools import partial

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TopicPartition
from ottla.broker.cluster.admission import proven_broker, refuse_client
from ottla.broker.groups import Groups
from ottla.broker.groups.answer import PartedResponse
from ottla.broker.produce.producer_ids import ProducerIdBlocks
from ottla.broker.requests.check import RequestCheck
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import DeniedAnswer, all_of, resource
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.view import ClusterView
from ottla.broker.topics.internal_topics import CONSUMER_OFFSETS
from ottla.broker.topics.topics import Topics
from ottla.broker.transactions import Transactions
from ottla.broker.transactions.transactions import Codes, as_version_knows, reply_with
from ottla.metadata.image import INTERNAL_TOPICS
from ottla.security.names import AclOperation, AclResource
from ottla.transaction.end_txn import End
from ottla.transaction.init_producer_id import ProducerIdWish
from ottla.transaction.transaction import EPOCH_PER_TRANSACTION, Answered, ProducerIdentity
from ottla.wire.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)

_INIT_PRODUCER_FENCED_FROM = 4


def _init_needs(check: RequestCheck[InitProducerIdRequest]) -> None:
    """Require WRITE on the transactional id; without one, WRITE on any topic (KIP-679)."""
    name = check.body.transactional_id
    if name is not None:
        check.require(AclOperation.WRITE, AclResource.TRANSACTIONAL_ID, name)
    elif not check.access.allows_any(AclOperation.WRITE, AclResource.TOPIC):
        check.require_cluster(AclOperation.IDEMPOTENT_WRITE)


@dataclass(slots=True, eq=False, repr=False)
class InitProducerId(Handler):
    """InitProducerId (22), versions 0-5: returns a producer id, and fences earlier producers.

    A request without a transactional id is from an idempotent producer and gets a new id. Otherwise
    the answer has the producer id of the transactional id, with a new epoch. This fences an earlier
    producer and aborts its open transaction. From version 3 on a producer may send its id and epoch
    to continue (KIP-360); from 4 on a fenced producer gets PRODUCER_FENCED.
    """

    api = Api(InitProducerIdRequest, InitProducerIdResponse, Versions(0, 5), needs=_init_needs)

    runtime: Runtime
    transactions: Transactions
    producer_ids: ProducerIdBlocks

    def handle(
        self, request: RequestContext, body: InitProducerIdRequest
    ) -> InitProducerIdResponse | None:
        """Return a new producer id with epoch 0, or pass on to the transaction coordinator."""
        if (body.producer_id == NO_PRODUCER_ID) != (body.producer_epoch == NO_PRODUCER_EPOCH):
            raise OttlaError(
                ErrorCode.INVALID_REQUEST, "a producer id and its epoch must be given together"
            )
        if body.transactional_id is not None:
            self._initialize(request, body, body.transactional_id)
            return None
        producer_id = self.producer_ids.take()
        if producer_id is None:
            self.runtime.spawn(self._reserve(request, body))
            return None
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)

    async def _reserve(self, request: RequestContext, body: InitProducerIdRequest) -> None:
        try:
            producer_id = await self.producer_ids.reserve()
        except OttlaError as error:
            request.reply(self.on_error(body, error.code, error.message, request.version))
            return
        request.reply(InitProducerIdResponse(producer_id=producer_id, producer_epoch=0))

    def _initialize(
        self, request: RequestContext, body: InitProducerIdRequest, transactional_id: str
    ) -> None:
        if not transactional_id:
            raise OttlaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
        wish = ProducerIdWish(
            body.transaction_timeout_ms, ProducerIdentity(body.producer_id, body.producer_epoch)
        )

        def build(answered: Answered) -> InitProducerIdResponse:
            response = self.on_error(body, answered.code, None, request.version)
            if answered.code is ErrorCode.NONE:
                response.producer_id, response.producer_epoch = answered.identity
            return response

        self.transactions.run_with_producer_id(
            transactional_id,
            reply_with(request, build, Answered),
            lambda coordinator, ticket, fresh, now_ms: coordinator.initialize(
                ticket, transactional_id, wish, fresh, now_ms
            ),
        )

    @staticmethod
    def on_error(
        _body: InitProducerIdRequest, code: ErrorCode, _message: str | None, version: int
    ) -> InitProducerIdResponse:
        """Return a response without an id, with an error that this version knows."""
        code = as_version_knows(code, version, fenced_from=_INIT_PRODUCER_FENCED_FROM)
        return InitProducerIdResponse(
            error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
        )


_BROKERS_FROM = 4
_PARTITIONS_PRODUCER_FENCED_FROM = 2
_CLIENT_VERSION = 1


def _partitions_needs(check: RequestCheck[AddPartitionsToTxnRequest]) -> DeniedAnswer | None:
    """Require WRITE on the transactional id and on every topic; otherwise no partition is added.

    Only brokers send version 4 and later; the handler refuses clients.
    """
    body = check.body
    if check.version >= _BROKERS_FROM:
        return None
    name = body.v3_and_below_transactional_id
    check.require(AclOperation.WRITE, AclResource.TRANSACTIONAL_ID, name)
    topics = body.v3_and_below_topics
    denied = {
        topic.name: check.code(AclOperation.WRITE, AclResource.TOPIC, topic.name)
        for topic in topics
    }
    if not any(denied.values()):
        return None
    codes = {
        each: denied[each.topic] or ErrorCode.OPERATION_NOT_ATTEMPTED
        for each in _partitions(topics)
    }
    return DeniedAnswer(
        AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(topics, codes))
    )


@dataclass(slots=True, eq=False, repr=False)
class AddPartitionsToTxn(Handler):
    """AddPartitionsToTxn (24): adds partitions to a transaction before it writes to them.

    Clients send versions 0-3, for one transaction. The whole request fails if a partition is
    missing, or if its topic is internal (TOPIC_AUTHORIZATION_FAILED, as in Kafka). Brokers send
    versions 4 and 5, for many transactions, to add partitions for a client or only to verify that
    the client has added them (KIP-890). From version 2 on a fenced producer gets PRODUCER_FENCED.
    """

    api = Api(
        AddPartitionsToTxnRequest,
        AddPartitionsToTxnResponse,
        Versions(0, 5),
        needs=_partitions_needs,
    )

    view: ClusterView
    transactions: Transactions

    def handle(
        self, request: RequestContext, body: AddPartitionsToTxnRequest
    ) -> AddPartitionsToTxnResponse | None:
        """Let the coordinator of each transaction add the partitions."""
        if request.version >= _BROKERS_FROM:
            return self._of_broker(request, body)
        wanted = _partitions(body.v3_and_below_topics)
        if not body.v3_and_below_transactional_id:
            raise OttlaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
        missing = [each for each in wanted if self.view.image.partition(*each) is None]
        internal = [each for each in wanted if each.topic in INTERNAL_TOPICS]
        if missing or internal:
            codes = dict.fromkeys(wanted, ErrorCode.OPERATION_NOT_ATTEMPTED)
            codes |= dict.fromkeys(missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            codes |= dict.fromkeys(internal, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            return AddPartitionsToTxnResponse(
                results_by_topic_v3_and_below=_results(body.v3_and_below_topics, codes)
            )
        identity = ProducerIdentity(body.v3_and_below_producer_id, body.v3_and_below_producer_epoch)

        def build(answered: Answered) -> AddPartitionsToTxnResponse:
            return self.on_error(body, answered.code, None, request.version)

        self.transactions.run(
            body.v3_and_below_transactional_id,
            reply_with(request, build, Answered),
            lambda coordinator, ticket, now_ms: coordinator.add(
                ticket,
                body.v3_and_below_transactional_id,
                identity,
                wanted,
                _CLIENT_VERSION,
                now_ms,
            ),
        )
        return None

    def _of_broker(
        self, request: RequestContext, body: AddPartitionsToTxnRequest
    ) -> AddPartitionsToTxnResponse | None:
        if proven_broker(request.connection) is None:
            raise refuse_client(request, "AddPartitionsToTxn from version 4 on")
        parted = PartedResponse(
            request,
            len(body.transactions),
            lambda parts: AddPartitionsToTxnResponse(results_by_transaction=parts),
        )
        for index, question in enumerate(body.transactions):
            self._answer(question, partial(parted.put, index))
        return None

    def _answer(self, question: AddPartitionsToTxnTransaction, put: "partial[None]") -> None:
        wanted = _partitions(question.topics)
        known = frozenset(each for each in wanted if self.view.image.partition(*each) is not None)

        def answer_codes(codes: Codes) -> None:
            found = dict.fromkeys(wanted, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) | dict(codes)
            put(
                AddPartitionsToTxnResult(
                    transactional_id=question.transactional_id,
                    topic_results=_results(question.topics, found),
                )
            )

        if not known:
            answer_codes({})
            return
        self.transactions.verify_or_add(
            question.transactional_id,
            ProducerIdentity(question.producer_id, question.producer_epoch),
            known,
            adds=not question.verify_only,
            on_answer=answer_codes,
        )

    @staticmethod
    def on_error(
        body: AddPartitionsToTxnRequest, code: ErrorCode, _message: str | None, version: int
    ) -> AddPartitionsToTxnResponse:
        """Return the same error for all partitions; to brokers, an error of the whole response."""
        if version >= _BROKERS_FROM:
            return AddPartitionsToTxnResponse(error_code=code)
        code = as_version_knows(code, version, fenced_from=_PARTITIONS_PRODUCER_FENCED_FROM)
        topics = body.v3_and_below_topics
        codes = dict.fromkeys(_partitions(topics), code)
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(topics, codes))


def _partitions(topics: list[AddPartitionsToTxnTopic]) -> frozenset[TopicPartition]:
    return frozenset(
        TopicPartition(topic.name, index) for topic in topics for index in topic.partitions
    )


def _results(
    topics: list[AddPartitionsToTxnTopic], codes: Codes
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index,
                    partition_error_code=codes[TopicPartition(topic.name, index)],
                )
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]


_OFFSETS_PRODUCER_FENCED_FROM = 2


@dataclass(slots=True, eq=False, repr=False)
class AddOffsetsToTxn(Handler):
    """AddOffsetsToTxn (25): announces that a transaction will commit offsets of a group.

    It adds the group's partition of `__consumer_offsets` to the transaction. From version 2 on a
    fenced producer gets PRODUCER_FENCED.
    """

    api = Api(
        AddOffsetsToTxnRequest,
        AddOffsetsToTxnResponse,
        Versions(0, 4),
        needs=all_of(
            resource(
                AclOperation.WRITE, AclResource.TRANSACTIONAL_ID, lambda body: body.transactional_id
            ),
            resource(AclOperation.READ, AclResource.GROUP, lambda body: body.group_id),
        ),
    )

    runtime: Runtime
    groups: Groups
    transactions: Transactions
    topics: Topics

    def handle(
        self, request: RequestContext, body: AddOffsetsToTxnRequest
    ) -> AddOffsetsToTxnResponse | None:
        """Let the transaction coordinator add the group's partition of `__consumer_offsets`."""
        if not body.transactional_id:
            raise OttlaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
        index = self.groups.partition_index(body.group_id)
        if index is None:
            self.runtime.spawn(self._create_offsets(request, body))
        else:
            self._add(request, body, index)
        return None

    async def _create_offsets(self, request: RequestContext, body: AddOffsetsToTxnRequest) -> None:
        """Create `__consumer_offsets`, missing until a group's coordinator is looked up."""
        try:
            await self.topics.auto_create(CONSUMER_OFFSETS)
        except OttlaError as error:
            request.reply(self.on_error(body, error.code, error.message, request.version))
            return
        index = self.groups.partition_index(body.group_id)
        assert index is not None
        self._add(request, body, index)

    def _add(self, request: RequestContext, body: AddOffsetsToTxnRequest, index: int) -> None:
        def build(answered: Answered) -> AddOffsetsToTxnResponse:
            return self.on_error(body, answered.code, None, request.version)

        self.transactions.run(
            body.transactional_id,
            reply_with(request, build, Answered),
            lambda coordinator, ticket, now_ms: coordinator.add(
                ticket,
                body.transactional_id,
                ProducerIdentity(body.producer_id, body.producer_epoch),
                frozenset({TopicPartition(CONSUMER_OFFSETS, index)}),
                _CLIENT_VERSION,
                now_ms,
            ),
        )

    @staticmethod
    def on_error(
        _body: AddOffsetsToTxnRequest, code: ErrorCode, _message: str | None, version: int
    ) -> AddOffsetsToTxnResponse:
        """Return the error code that clients of the request's version know."""
        code = as_version_knows(code, version, fenced_from=_OFFSETS_PRODUCER_FENCED_FROM)
        return AddOffsetsToTxnResponse(error_code=code)


_END_PRODUCER_FENCED_FROM = 2
_EPOCH_PER_TRANSACTION_FROM = 5


@dataclass(slots=True, eq=False, repr=False)
class EndTxn(Handler):
    """EndTxn (26), versions 0-5: commits or aborts a transaction.

    The answer is sent when the coordinator has committed the decision; the markers are written
    afterwards. From version 2 on a fenced producer gets PRODUCER_FENCED. Version 5 increases the
    producer's epoch and returns it (KIP-890).
    """

    api = Api(
        EndTxnRequest,
        EndTxnResponse,
        Versions(0, 5),
        needs=resource(
            AclOperation.WRITE, AclResource.TRANSACTIONAL_ID, lambda body: body.transactional_id
        ),
    )

    transactions: Transactions

    def handle(self, request: RequestContext, body: EndTxnRequest) -> EndTxnResponse | None:
        """Pass the request to the transaction coordinator, which answers."""
        if not body.transactional_id:
            raise OttlaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
        raises = request.version >= _EPOCH_PER_TRANSACTION_FROM
        wish = End(
            ProducerIdentity(body.producer_id, body.producer_epoch),
            body.committed,
            EPOCH_PER_TRANSACTION if raises else EPOCH_PER_TRANSACTION - 1,
        )

        def build(answered: Answered) -> EndTxnResponse:
            response = self.on_error(body, answered.code, None, request.version)
            if answered.code is ErrorCode.NONE:
                response.producer_id, response.producer_epoch = answered.identity
            return response

        self.transactions.run_with_producer_id(
            body.transactional_id,
            reply_with(request, build, Answered),
            lambda coordinator, ticket, fresh, now_ms: coordinator.end(
                ticket, body.transactional_id, wish, fresh, now_ms
            ),
        )
        return None

    @staticmethod
    def on_error(
        _body: EndTxnRequest, code: ErrorCode, _message: str | None, version: int
    ) -> EndTxnResponse:
        """Return the error code that clients of the request's version know."""
        code = as_version_knows(code, version, fenced_from=_END_PRODUCER_FENCED_FROM)
        return EndTxnResponse(error_code=code)
