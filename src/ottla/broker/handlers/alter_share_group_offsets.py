"""AlterShareGroupOffsets (91), version 0: sets an empty share group's offsets (KIP-932)."""

from collections.abc import Iterator
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import NO_TOPIC_ID
from ottla.broker.audit.details import partition_changes
from ottla.broker.configs.features import require_feature
from ottla.broker.groups import Groups
from ottla.broker.requests.auditing import AdminChange, group_need
from ottla.broker.requests.check import MESSAGES
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import all_of, each, named, resource
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.view import ClusterView
from ottla.broker.share.group_state import GroupShareStates, require
from ottla.broker.share.messages import Begin
from ottla.group.records.share import TopicState
from ottla.group.share.groups import Allowed
from ottla.metadata.features import SHARE
from ottla.security.names import AclOperation, AclResource
from ottla.share.coordinator import KeyAnswer
from ottla.share.records import ShareKey
from ottla.wire.messages.share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)

_NO_SUCH = KeyAnswer(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _denied(
    topic: AlterShareGroupOffsetsRequestTopic, code: ErrorCode
) -> AlterShareGroupOffsetsResponseTopic:
    return AlterShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name,
        topic_id=NO_TOPIC_ID,
        partitions=[
            AlterShareGroupOffsetsResponsePartition(
                partition_index=partition.partition_index,
                error_code=code,
                error_message=MESSAGES[code],
            )
            for partition in topic.partitions
        ],
    )


def _changes(
    body: AlterShareGroupOffsetsRequest, response: AlterShareGroupOffsetsResponse
) -> Iterator[AdminChange]:
    """Return an audit line for each topic."""
    return partition_changes(
        group_need(AclOperation.READ, body.group_id),
        (
            (one.topic_name, part.partition_index, part.start_offset)
            for one in body.topics
            for part in one.partitions
        ),
        (
            (one.topic_name, part.partition_index, part.error_code)
            for one in response.responses
            for part in one.partitions
        ),
        "offsets",
        code=response.error_code,
    )


@dataclass(slots=True, eq=False, repr=False)
class AlterShareGroupOffsets(Handler):
    """Serves AlterShareGroupOffsets: deletes the group's state, then initializes it anew."""

    api = Api(
        AlterShareGroupOffsetsRequest,
        AlterShareGroupOffsetsResponse,
        Versions(0, 0),
        needs=all_of(
            resource(AclOperation.READ, AclResource.GROUP, lambda body: body.group_id),
            each(
                lambda body: body.topics,
                lambda response: response.responses,
                named(AclOperation.READ, AclResource.TOPIC, lambda topic: topic.topic_name),
                _denied,
                error_of=lambda response: response.error_code,
            ),
        ),
        changes=_changes,
        # The state of each partition is deleted and initialized anew in one go.
        fewer_elements_max=20_000,
    )

    view: ClusterView
    groups: Groups
    state: GroupShareStates

    async def handle(
        self, request: RequestContext, body: AlterShareGroupOffsetsRequest
    ) -> AlterShareGroupOffsetsResponse:
        """Initialize the state again at the given offsets, with a higher state epoch."""
        require_feature(self.view.image, SHARE)
        group_id = body.group_id
        if not group_id:
            raise OttlaError(ErrorCode.INVALID_GROUP_ID, "The group id is invalid.")
        allowed: Allowed = await self.groups.run_and_wait(
            request,
            group_id,
            lambda coordinator, call, at: coordinator.share.start_altering(call, group_id, at),
        )
        require(allowed, group_id, f"Group {group_id} is not a share group.")
        if allowed.topics:
            await self.state.delete(request, group_id, allowed.topics)
        begins: dict[ShareKey, Begin] = {}
        topics = []
        for topic in body.topics:
            known = self.view.image.topic(topic.topic_name)
            if known is None:
                continue
            valid = {
                part.partition_index: part.start_offset
                for part in topic.partitions
                if 0 <= part.partition_index < len(known.partitions) and part.start_offset >= 0
            }
            topics.append(TopicState(known.id, known.name, frozenset(valid)))
            for index, offset in valid.items():
                begins[ShareKey(group_id, known.id, index)] = Begin(allowed.epoch, offset)
        answers = await self.state.initialize(request, group_id, begins, topics)
        return self._response(body, answers)

    def _response(
        self, body: AlterShareGroupOffsetsRequest, answers: dict[ShareKey, KeyAnswer]
    ) -> AlterShareGroupOffsetsResponse:
        responses = []
        for topic in body.topics:
            known = self.view.image.topic(topic.topic_name)
            topic_id = NO_TOPIC_ID if known is None else known.id
            parts = []
            for part in topic.partitions:
                key = ShareKey(body.group_id, topic_id, part.partition_index)
                answered = answers.get(key, _NO_SUCH)
                if part.start_offset < 0:
                    answered = KeyAnswer(
                        ErrorCode.INVALID_REQUEST, message="a start offset cannot be negative"
                    )
                parts.append(
                    AlterShareGroupOffsetsResponsePartition(
                        partition_index=part.partition_index,
                        error_code=answered.code,
                        error_message=answered.message,
                    )
                )
            responses.append(
                AlterShareGroupOffsetsResponseTopic(
                    topic_name=topic.topic_name, topic_id=topic_id, partitions=parts
                )
            )
        return AlterShareGroupOffsetsResponse(responses=responses)
