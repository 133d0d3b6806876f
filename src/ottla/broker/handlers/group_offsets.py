"""The handlers that commit and delete the offsets of groups."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicId, TopicPartition
from ottla.broker.audit.details import partition_changes
from ottla.broker.groups import Groups
from ottla.broker.groups.answer import whole_answer
from ottla.broker.groups.rewinds import Rewinds, committed
from ottla.broker.partitions.partition import OnBehalf
from ottla.broker.requests.auditing import AdminChange, group_need
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import all_of, each, named, resource, topic_or_id
from ottla.broker.requests.portions import in_portions, items
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.view import ClusterView
from ottla.broker.transactions.verification import Verifications
from ottla.group.coordinator.coordinator import GroupCoordinator
from ottla.group.model.turn import Call, GroupDecision, Moment
from ottla.group.offsets.commit import PartitionCheck, commit_refused, transactional_commit_refused
from ottla.metadata.image import ClusterImage
from ottla.security.names import AclOperation, AclResource
from ottla.storage.producers.state import Guard
from ottla.transaction.transaction import ProducerIdentity
from ottla.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponseTopic,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

_TOPIC_IDS_FROM = 10


def _commit_changes(
    body: OffsetCommitRequest, response: OffsetCommitResponse
) -> Iterator[AdminChange]:
    """Return an audit event for each topic, if the client is not a member of the group.

    Such clients are tools that reset a group's offsets, and consumers that assign partitions
    manually.
    """
    if body.member_id or body.generation_id_or_member_epoch >= 0:
        return iter(())
    need = group_need(AclOperation.READ, body.group_id)
    return partition_changes(
        need,
        (
            (one.name or str(one.topic_id), part.partition_index, part.committed_offset)
            for one in body.topics
            for part in one.partitions
        ),
        (
            (one.name or str(one.topic_id), part.partition_index, part.error_code)
            for one in response.topics
            for part in one.partitions
        ),
        "offsets",
    )


@dataclass(slots=True, eq=False, repr=False)
class OffsetCommit(Handler):
    """OffsetCommit (8), versions 2-10: stores the offsets at which a group resumes.

    It is sent by a member or, with generation -1, by a client that only stores offsets. Versions
    2-4 set a retention; 6 adds the leader epoch (KIP-320), 7 static members, 10 topic ids
    (KIP-848).
    """

    api = Api(
        OffsetCommitRequest,
        OffsetCommitResponse,
        Versions(2, 10),
        needs=all_of(
            resource(AclOperation.READ, AclResource.GROUP, lambda body: body.group_id),
            each(
                lambda body: body.topics,
                lambda response: response.topics,
                topic_or_id(AclOperation.READ, lambda topic: (topic.topic_id, topic.name)),
            ),
        ),
        changes=_commit_changes,
        changes_often=True,
        portions=in_portions(
            lambda body: body.topics,
            lambda response: response.topics,
            lambda topic: (topic.name, topic.topic_id),
            inner=items(lambda topic: topic.partitions, lambda topic: topic.partitions),
        ),
    )

    view: ClusterView
    groups: Groups
    rewinds: Rewinds

    def handle(self, request: RequestContext, body: OffsetCommitRequest) -> None:
        """Add missing names or ids of topics, then pass the commit to the group's coordinator."""
        image = self.view.image
        by_id = request.version >= _TOPIC_IDS_FROM
        for topic in body.topics:
            known = image.topic_by_id(TopicId(topic.topic_id)) if by_id else image.topic(topic.name)
            if known is not None:
                topic.name = known.name
                topic.topic_id = known.id
        check = _partition_check(image, by_id=by_id)
        if body.generation_id_or_member_epoch < 0:
            self.groups.admit(request, body.group_id)
        if body.member_id or body.generation_id_or_member_epoch >= 0:
            self.groups.run(
                body.group_id,
                whole_answer(request, body, self.on_error),
                lambda coordinator, call, at: coordinator.offsets.commit(call, body, check, at),
            )
        else:
            self._commit_without_member(request, body, check)

    def _commit_without_member(
        self, request: RequestContext, body: OffsetCommitRequest, check: PartitionCheck
    ) -> None:
        """Pass the commit on, and record it if it is a rewind."""
        wanted = {
            TopicPartition(topic.name, one.partition_index): one.committed_offset
            for topic in body.topics
            for one in topic.partitions
        }
        before: dict[TopicPartition, int | None] = {}

        def commit(coordinator: GroupCoordinator, call: Call, at: Moment) -> GroupDecision:
            before.update(committed(coordinator, body.group_id, wanted))
            return coordinator.offsets.commit(call, body, check, at)

        def give(response: OffsetCommitResponse) -> None:
            made = _successful((topic.name, topic.partitions) for topic in response.topics)
            after = {name: wanted[name] for name in made if name in before}
            self.rewinds.note(request, body.group_id, before, after)
            request.reply(response)

        answer = whole_answer(request, body, self.on_error, give)
        self.groups.run(body.group_id, answer, commit)

    @staticmethod
    def on_error(
        body: OffsetCommitRequest, code: ErrorCode, _message: str | None, _version: int
    ) -> OffsetCommitResponse:
        """Return the same error for every partition."""
        return commit_refused(body, code)


def _successful(
    topics: Iterable[tuple[str, list[OffsetCommitResponsePartition]]],
) -> list[TopicPartition]:
    return [
        TopicPartition(topic, one.partition_index)
        for topic, partitions in topics
        for one in partitions
        if one.error_code == ErrorCode.NONE
    ]


def _partition_check(image: ClusterImage, *, by_id: bool) -> PartitionCheck:
    def check(topic: OffsetCommitRequestTopic, index: int) -> ErrorCode:
        if by_id and not topic.name:
            return ErrorCode.UNKNOWN_TOPIC_ID
        if image.partition(topic.name, index) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NONE

    return check


_ADDS_FROM = 5
# From this version on a producer understands the error TRANSACTION_ABORTABLE (KIP-890).
_ABORTABLE_FROM = 4
# Errors of the transaction coordinator, mapped to errors that a group coordinator may return.
_ANSWERED = {
    ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}
_ANSWERED_BEFORE_ADDING = {
    **_ANSWERED,
    ErrorCode.CONCURRENT_TRANSACTIONS: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}
_ANSWERED_TO_OLD_CLIENTS = {
    **_ANSWERED_BEFORE_ADDING,
    ErrorCode.TRANSACTION_ABORTABLE: ErrorCode.INVALID_TXN_STATE,
}


@dataclass(slots=True, eq=False, repr=False)
class TxnOffsetCommit(Handler):
    """TxnOffsetCommit (28), versions 0-5: commits a group's offsets as part of a transaction.

    Version 2 adds leader epochs; 3 adds members and generations, so that zombies are fenced
    (KIP-447). From 5 on this request adds the group's partition to the transaction. In earlier
    versions the broker verifies that AddOffsetsToTxn has added it (KIP-890). The transaction
    coordinator verifies the transaction, and the group coordinator commits.
    """

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
        """Verify that the transaction is open, then pass the commit to the group's coordinator."""
        if not body.transactional_id:
            raise OttlaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
        adds = request.version >= _ADDS_FROM
        if body.generation_id < 0:
            self.groups.admit(request, body.group_id)
        answer = whole_answer(request, body, self.on_error)

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
    """Convert an error of the transaction coordinator to one that a client of `version` knows."""
    if version >= _ADDS_FROM:
        return _ANSWERED.get(code, code)
    return (
        _ANSWERED_BEFORE_ADDING if version >= _ABORTABLE_FROM else _ANSWERED_TO_OLD_CLIENTS
    ).get(code, code)


def _exists(image: ClusterImage, topic: str, index: int) -> bool:
    return image.partition(topic, index) is not None


def _denied(topic: OffsetDeleteRequestTopic, code: ErrorCode) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=[
            OffsetCommitResponsePartition(
                partition_index=partition.partition_index, error_code=code
            )
            for partition in topic.partitions
        ],
    )


def _delete_changes(
    body: OffsetDeleteRequest, response: OffsetDeleteResponse
) -> Iterator[AdminChange]:
    """Return an audit event for each topic."""
    return partition_changes(
        group_need(AclOperation.DELETE, body.group_id),
        ((one.name, part.partition_index, None) for one in body.topics for part in one.partitions),
        (
            (one.name, part.partition_index, part.error_code)
            for one in response.topics
            for part in one.partitions
        ),
        code=response.error_code,
    )


@dataclass(slots=True, eq=False, repr=False)
class OffsetDelete(Handler):
    """OffsetDelete (47), version 0: deletes offsets of topics that no member reads (KIP-496)."""

    api = Api(
        OffsetDeleteRequest,
        OffsetDeleteResponse,
        Versions(0, 0),
        needs=all_of(
            resource(AclOperation.DELETE, AclResource.GROUP, lambda body: body.group_id),
            each(
                lambda body: body.topics,
                lambda response: response.topics,
                named(AclOperation.READ, AclResource.TOPIC, lambda topic: topic.name),
                _denied,
            ),
        ),
        changes=_delete_changes,
        portions=in_portions(
            lambda body: body.topics,
            lambda response: response.topics,
            lambda topic: topic.name,
            inner=items(lambda topic: topic.partitions, lambda topic: topic.partitions),
        ),
    )

    view: ClusterView
    groups: Groups
    rewinds: Rewinds

    def handle(self, request: RequestContext, body: OffsetDeleteRequest) -> None:
        """Pass the request to the group's coordinator, which answers."""
        if not body.group_id:
            raise OttlaError(ErrorCode.INVALID_GROUP_ID, "a group needs a name")
        image = self.view.image

        def exists(topic: str, index: int) -> bool:
            return image.partition(topic, index) is not None

        before: dict[TopicPartition, int | None] = {}

        def delete(coordinator: GroupCoordinator, call: Call, at: Moment) -> GroupDecision:
            before.update(committed(coordinator, body.group_id, None))
            return coordinator.offsets.delete_offsets(call, body, exists, at)

        def give(response: OffsetDeleteResponse) -> None:
            deleted = _successful((topic.name, topic.partitions) for topic in response.topics)
            after = dict.fromkeys(name for name in deleted if name in before)
            self.rewinds.note(request, body.group_id, before, after)
            request.reply(response)

        answer = whole_answer(request, body, self.on_error, give)
        self.groups.run(body.group_id, answer, delete)
