"""OffsetCommit (8), versions 2-10: stores the offsets at which a group resumes.

Sent by a member or, with generation -1, by a client that only stores offsets. Versions 2-4 set a
retention; 6 adds the leader epoch (KIP-320), 7 static members, 10 topic ids (KIP-848).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicId
from ottla.broker.audit.details import partition_changes
from ottla.broker.groups import Groups
from ottla.broker.groups.answer import WholeAnswer
from ottla.broker.requests.auditing import AdminChange, group_need
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import all_of, each, resource, topic_or_id
from ottla.broker.requests.portions import in_portions, items
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.view import ClusterView
from ottla.group.offsets.commit import PartitionCheck, commit_refused
from ottla.metadata.image import ClusterImage
from ottla.security.names import AclOperation, AclResource
from ottla.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)

_TOPIC_IDS_FROM = 10


def _changes(body: OffsetCommitRequest, response: OffsetCommitResponse) -> Iterator[AdminChange]:
    """Return an audit line for each topic, if the client is not a member of the group.

    Tools that reset a group's offsets commit like that, and consumers that assign partitions
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
    """Serves OffsetCommit."""

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
        changes=_changes,
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

    def handle(self, request: RequestContext, body: OffsetCommitRequest) -> None:
        """Complete the topics with both name and id, then have the group's coordinator decide."""
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
        self.groups.run(
            body.group_id,
            WholeAnswer(request, body, self.on_error),
            lambda coordinator, call, at: coordinator.offsets.commit(call, body, check, at),
        )

    @staticmethod
    def on_error(
        body: OffsetCommitRequest, code: ErrorCode, _message: str | None, _version: int
    ) -> OffsetCommitResponse:
        """Return the same error for every partition."""
        return commit_refused(body, code)


def _partition_check(image: ClusterImage, *, by_id: bool) -> PartitionCheck:
    def check(topic: OffsetCommitRequestTopic, index: int) -> ErrorCode:
        if by_id and not topic.name:
            return ErrorCode.UNKNOWN_TOPIC_ID
        if image.partition(topic.name, index) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NONE

    return check
