"""AddPartitionsToTxn (24), versions 0-5: adds partitions to a transaction before it writes to them.

Clients send versions 0-3, one transaction at a time; a missing partition, or one of an internal
topic (TOPIC_AUTHORIZATION_FAILED, as in Kafka), fails the whole request. Brokers send 4 and 5, for
many transactions, to add partitions on a client's behalf or only to verify that the client has
added them (KIP-890). From 2 on a fenced producer gets PRODUCER_FENCED.
"""

from dataclasses import dataclass
from functools import partial

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.broker.cluster.admission import proven_broker, refuse_client
from ottla.broker.groups.answer import PartedResponse
from ottla.broker.requests.check import RequestCheck
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import DeniedAnswer
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.view import ClusterView
from ottla.broker.transactions import Transactions
from ottla.broker.transactions.answer import as_version_knows, reply_with
from ottla.broker.transactions.transactions import Codes
from ottla.metadata.image import INTERNAL_TOPICS
from ottla.security.names import AclOperation, AclResource
from ottla.transaction.transaction import ProducerIdentity
from ottla.transaction.turn import Answered
from ottla.wire.messages.transactions import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

_BROKERS_FROM = 4
_PRODUCER_FENCED_FROM = 2
_CLIENT_VERSION = 1


def _needs(check: RequestCheck[AddPartitionsToTxnRequest]) -> DeniedAnswer | None:
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
    """Serves AddPartitionsToTxn."""

    api = Api(AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, Versions(0, 5), needs=_needs)

    view: ClusterView
    transactions: Transactions

    def handle(
        self, request: RequestContext, body: AddPartitionsToTxnRequest
    ) -> AddPartitionsToTxnResponse | None:
        """Have the coordinator of each transaction add its partitions."""
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
        """Return the same error for all partitions.

        For brokers, the error of the whole response.
        """
        if version >= _BROKERS_FROM:
            return AddPartitionsToTxnResponse(error_code=code)
        code = as_version_knows(code, version, fenced_from=_PRODUCER_FENCED_FROM)
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
