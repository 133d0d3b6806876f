"""TxnOffsetCommit (28), versions 0-5: commits a group's offsets as part of a transaction.

Version 2 adds leader epochs; 3 adds members and generations, so that zombies are refused (KIP-447).
From 5 on this request adds the group's partition to the transaction; earlier versions verify that
AddOffsetsToTxn has done so (KIP-890).
"""

from dataclasses import dataclass
from functools import partial

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.groups import Groups
from ottla.broker.groups.answer import WholeAnswer
from ottla.broker.partitions.partition import OnBehalf
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import all_of, each, named, resource
from ottla.broker.requests.portions import in_portions, items
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.view import ClusterView
from ottla.broker.transactions.verification import Verifications
from ottla.group.offsets.commit import transactional_commit_refused
from ottla.metadata.image import ClusterImage
from ottla.security.names import AclOperation, AclResource
from ottla.storage.producers.state import Guard
from ottla.transaction.transaction import ProducerIdentity
from ottla.wire.messages.group_offsets import TxnOffsetCommitRequest, TxnOffsetCommitResponse

_ADDS_FROM = 5
# From this version on a producer understands TRANSACTION_ABORTABLE (KIP-890).
_ABORTABLE_FROM = 4
# Transaction coordinator errors, mapped to errors that a group coordinator may answer.
_TOLD = {
    ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}
_TOLD_BEFORE_ADDING = {
    **_TOLD,
    ErrorCode.CONCURRENT_TRANSACTIONS: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}
_TOLD_OF_OLD = {
    **_TOLD_BEFORE_ADDING,
    ErrorCode.TRANSACTION_ABORTABLE: ErrorCode.INVALID_TXN_STATE,
}


@dataclass(slots=True, eq=False, repr=False)
class TxnOffsetCommit(Handler):
    """Serves TxnOffsetCommit: one coordinator verifies the transaction, the other commits."""

    api = Api(
        TxnOffsetCommitRequest,
        TxnOffsetCommitResponse,
        Versions(0, 5),
        needs=all_of(
            resource(
                AclOperation.WRITE, AclResource.TRANSACTIONAL_ID, lambda body: body.transactional_id
            ),
            resource(AclOperation.READ, AclResource.GROUP, lambda body: body.group_id),
            each(
                lambda body: body.topics,
                lambda response: response.topics,
                named(AclOperation.READ, AclResource.TOPIC, lambda topic: topic.name),
            ),
        ),
        portions=in_portions(
            lambda body: body.topics,
            lambda response: response.topics,
            lambda topic: topic.name,
            inner=items(lambda topic: topic.partitions, lambda topic: topic.partitions),
        ),
    )

    view: ClusterView
    groups: Groups
    verifications: Verifications

    def handle(self, request: RequestContext, body: TxnOffsetCommitRequest) -> None:
        """Verify that the transaction is open, then have the group's coordinator decide."""
        if not body.transactional_id:
            raise OttlaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
        adds = request.version >= _ADDS_FROM
        if body.generation_id < 0:
            self.groups.admit(request, body.group_id)
        answer = WholeAnswer(request, body, self.on_error)

        def go_on(found: Guard | ErrorCode) -> None:
            if isinstance(found, ErrorCode):
                answer.fail(_known_code(found, request.version))
                return
            check = partial(_exists, self.view.image)
            try:
                self.groups.run(
                    body.group_id,
                    answer,
                    lambda coordinator, call, at: coordinator.offsets.commit_in_transaction(
                        call, body, check, at
                    ),
                    OnBehalf(body.producer_id, body.producer_epoch, found),
                )
            except OttlaError as error:
                answer.fail(error.code)

        self.verifications.verify(
            self.groups.partition(body.group_id),
            body.transactional_id,
            ProducerIdentity(body.producer_id, body.producer_epoch),
            adds=adds,
            on_answer=go_on,
        )

    @staticmethod
    def on_error(
        body: TxnOffsetCommitRequest, code: ErrorCode, _message: str | None, _version: int
    ) -> TxnOffsetCommitResponse:
        """Return the same error for every partition."""
        return transactional_commit_refused(body, code)


def _known_code(code: ErrorCode, version: int) -> ErrorCode:
    """Return the transaction coordinator's error as a client of this version knows it."""
    if version >= _ADDS_FROM:
        return _TOLD.get(code, code)
    return (_TOLD_BEFORE_ADDING if version >= _ABORTABLE_FROM else _TOLD_OF_OLD).get(code, code)


def _exists(image: ClusterImage, topic: str, index: int) -> bool:
    return image.partition(topic, index) is not None
