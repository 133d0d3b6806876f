"""The handlers that list, set and delete the start offsets of share groups."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import NO_TOPIC_ID, TopicPartition
from ottla.broker.access.offsets import describe_share_group_offsets
from ottla.broker.audit.details import partition_changes
from ottla.broker.configs.features import require_feature
from ottla.broker.groups import Groups
from ottla.broker.requests.auditing import AdminChange, group_need
from ottla.broker.requests.check import MESSAGES
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import all_of, each, named, resource
from ottla.broker.requests.portions import in_portions, items, once
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.view import ClusterView
from ottla.broker.share.group_state import GroupShareStates, require
from ottla.broker.share.messages import SUMMARY, Begin
from ottla.broker.share.persister import EndOffsets, Persister
from ottla.group.records.share import TopicState
from ottla.group.share.groups import Allowed
from ottla.metadata.features import SHARE
from ottla.security.audit.chain import bounded
from ottla.security.names import AclOperation, AclResource
from ottla.share.coordinator import KeyAnswer
from ottla.share.records import UNKNOWN, ShareKey, ShareState
from ottla.wire.messages.share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)

_PATIENCE_MS = 5_000


def _add_topics(
    group: DescribeShareGroupOffsetsRequestGroup, other: DescribeShareGroupOffsetsRequestGroup
) -> None:
    """Merge the requested topics; None means all topics."""
    if group.topics is None or other.topics is None:
        group.topics = None
    else:
        group.topics += other.topics


def _add_partitions(
    topic: DescribeShareGroupOffsetsRequestTopic, other: DescribeShareGroupOffsetsRequestTopic
) -> None:
    topic.partitions += other.partitions


@dataclass(slots=True, eq=False, repr=False)
class DescribeShareGroupOffsets(Handler):
    """DescribeShareGroupOffsets (90): lists the start offsets of share groups (KIP-932).

    From version 1 on it includes the lag: the number of unfinished records after the start offset
    (KIP-1226).
    """

    api = Api(
        DescribeShareGroupOffsetsRequest,
        DescribeShareGroupOffsetsResponse,
        Versions(0, 1),
        needs=describe_share_group_offsets,
        portions=in_portions(
            lambda body: body.groups,
            lambda response: response.groups,
            lambda group: group.group_id,
            error=lambda group: group.error_code,
            inner=items(
                lambda group: group.topics,
                lambda group: group.topics,
                lambda topic: topic.topic_name,
                inner=items(lambda topic: topic.partitions, lambda topic: topic.partitions),
            ),
            most=64,
        ),
        once=once(
            lambda body: body.groups,
            lambda group: group.group_id,
            _add_topics,
            inner=once(
                lambda group: group.topics,
                lambda topic: topic.topic_name,
                _add_partitions,
                inner=once(lambda topic: topic.partitions),
            ),
        ),
        # The answers to all portions are kept until the end, which slows down garbage collection.
        fewer_elements_max=60_000,
        on_error=lambda body, code, message: DescribeShareGroupOffsetsResponse(
            groups=[_failed(each.group_id, code, message) for each in body.groups]
        ),
    )

    view: ClusterView
    groups: Groups
    persister: Persister
    end_offsets: EndOffsets

    async def handle(
        self, request: RequestContext, body: DescribeShareGroupOffsetsRequest
    ) -> DescribeShareGroupOffsetsResponse:
        """Read the start offsets from the coordinators of each group's share state.

        As in Kafka, a group, topic or partition without state is answered without an offset.
        """
        require_feature(self.view.image, SHARE)
        groups = await asyncio.gather(*(self._describe(request, each) for each in body.groups))
        return DescribeShareGroupOffsetsResponse(groups=list(groups))

    async def _describe(
        self, request: RequestContext, wanted: DescribeShareGroupOffsetsRequestGroup
    ) -> DescribeShareGroupOffsetsResponseGroup:
        group_id = wanted.group_id
        try:
            allowed: Allowed = await self.groups.run_and_wait(
                request,
                group_id,
                lambda coordinator, call, _at: coordinator.share.begun(call, group_id),
            )
        except OttlaError as error:
            return _failed(group_id, error.code, error.message)
        partitions = _partitions(wanted, allowed)
        begun = {(topic.name, index) for topic in allowed.topics for index in topic.partitions}
        keys = {
            part: ShareKey(group_id, topic.id, part.partition)
            for part in partitions
            if tuple(part) in begun and (topic := self.view.image.topic(part.topic)) is not None
        }
        arguments = dict.fromkeys(keys.values(), UNKNOWN)
        answers, ends = await asyncio.gather(
            self.persister.ask(SUMMARY, arguments, patience_ms=_PATIENCE_MS),
            self.end_offsets.find(keys),
        )
        topics: dict[str, list[DescribeShareGroupOffsetsResponsePartition]] = {}
        for part in partitions:
            key = keys.get(part)
            answered = KeyAnswer(state=ShareState(0, UNKNOWN)) if key is None else answers[key]
            topics.setdefault(part.topic, []).append(_part(part, answered, ends.get(part)))
        return DescribeShareGroupOffsetsResponseGroup(
            group_id=group_id,
            topics=[
                DescribeShareGroupOffsetsResponseTopic(
                    topic_name=name,
                    topic_id=topic.id,
                    partitions=parts,
                )
                if (topic := self.view.image.topic(name)) is not None
                else DescribeShareGroupOffsetsResponseTopic(topic_name=name, partitions=parts)
                for name, parts in topics.items()
            ],
        )


def _partitions(
    wanted: DescribeShareGroupOffsetsRequestGroup, allowed: Allowed
) -> list[TopicPartition]:
    """Return the requested partitions; if none is named, all that the group has state for."""
    if wanted.topics is None:
        return [
            TopicPartition(topic.name, index)
            for topic in allowed.topics
            for index in sorted(topic.partitions)
        ]
    return [
        TopicPartition(topic.topic_name, index)
        for topic in wanted.topics
        for index in topic.partitions
    ]


def _part(
    each: TopicPartition, answered: KeyAnswer, end: int | None
) -> DescribeShareGroupOffsetsResponsePartition:
    state = answered.state or ShareState(0, UNKNOWN)
    lag = UNKNOWN
    if end is not None and UNKNOWN not in (state.start_offset, state.complete_count):
        lag = max(0, end - state.start_offset - state.complete_count)
    return DescribeShareGroupOffsetsResponsePartition(
        partition_index=each.partition,
        start_offset=state.start_offset,
        leader_epoch=state.leader_epoch,
        lag=lag,
        error_code=answered.code,
        error_message=answered.message,
    )


def _failed(
    group_id: str, code: ErrorCode, message: str | None
) -> DescribeShareGroupOffsetsResponseGroup:
    return DescribeShareGroupOffsetsResponseGroup(
        group_id=group_id, error_code=code, error_message=message
    )


_NO_SUCH = KeyAnswer(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _alter_denied(
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


def _alter_changes(
    body: AlterShareGroupOffsetsRequest, response: AlterShareGroupOffsetsResponse
) -> Iterator[AdminChange]:
    """Return an audit event for each topic."""
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
    """AlterShareGroupOffsets (91), version 0: sets an empty share group's offsets (KIP-932).

    It deletes the group's share state, then initializes it again.
    """

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
                _alter_denied,
                error_of=lambda response: response.error_code,
            ),
        ),
        changes=_alter_changes,
        # The state of each partition is deleted and initialized again without a pause.
        fewer_elements_max=20_000,
    )

    view: ClusterView
    groups: Groups
    state: GroupShareStates

    async def handle(
        self, request: RequestContext, body: AlterShareGroupOffsetsRequest
    ) -> AlterShareGroupOffsetsResponse:
        """Initialize the share state again at the given offsets, with a higher state epoch."""
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


def _delete_denied(
    topic: DeleteShareGroupOffsetsRequestTopic, code: ErrorCode
) -> DeleteShareGroupOffsetsResponseTopic:
    return DeleteShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name,
        topic_id=NO_TOPIC_ID,
        error_code=code,
        error_message=MESSAGES[code],
    )


def _delete_changes(
    body: DeleteShareGroupOffsetsRequest, response: DeleteShareGroupOffsetsResponse
) -> Iterator[AdminChange]:
    """Return an audit event for each topic."""
    codes = {one.topic_name: one.error_code for one in response.responses}
    need = group_need(AclOperation.DELETE, body.group_id)
    for wanted in body.topics:
        code = response.error_code or codes.get(wanted.topic_name, 0)
        yield AdminChange((need,), {"topic": bounded(wanted.topic_name)}, code)


@dataclass(slots=True, eq=False, repr=False)
class DeleteShareGroupOffsets(Handler):
    """DeleteShareGroupOffsets (92), version 0: deletes an empty share group's offsets (KIP-932)."""

    api = Api(
        DeleteShareGroupOffsetsRequest,
        DeleteShareGroupOffsetsResponse,
        Versions(0, 0),
        needs=all_of(
            resource(AclOperation.DELETE, AclResource.GROUP, lambda body: body.group_id),
            each(
                lambda body: body.topics,
                lambda response: response.responses,
                named(AclOperation.READ, AclResource.TOPIC, lambda topic: topic.topic_name),
                _delete_denied,
                error_of=lambda response: response.error_code,
            ),
        ),
        changes=_delete_changes,
    )

    view: ClusterView
    groups: Groups
    state: GroupShareStates

    async def handle(
        self, request: RequestContext, body: DeleteShareGroupOffsetsRequest
    ) -> DeleteShareGroupOffsetsResponse:
        """Delete the share state of the topics, so that the group will read their records again."""
        require_feature(self.view.image, SHARE)
        group_id = body.group_id
        if not group_id:
            raise OttlaError(ErrorCode.INVALID_GROUP_ID, "The group id is invalid.")
        had: Allowed = await self.groups.run_and_wait(
            request,
            group_id,
            lambda coordinator, call, _at: coordinator.share.begun(call, group_id),
        )
        names = {topic.topic_name for topic in body.topics}
        ids = {topic.name: topic.id for topic in had.topics if topic.name in names}
        allowed: Allowed = await self.groups.run_and_wait(
            request,
            group_id,
            lambda coordinator, call, at: coordinator.share.start_deleting(
                call, group_id, list(ids.values()), at
            ),
        )
        require(allowed, group_id, f"Group {group_id} not found.")
        answers = await self.state.delete(request, group_id, allowed.topics)
        failed = {key.topic_id: each for key, each in answers.items() if each.code}
        return DeleteShareGroupOffsetsResponse(
            responses=[_result(topic.topic_name, ids, failed) for topic in body.topics]
        )


def _result(
    name: str, ids: dict[str, UUID], failed: dict[UUID, KeyAnswer]
) -> DeleteShareGroupOffsetsResponseTopic:
    topic_id = ids.get(name)
    if topic_id is None:
        answered = KeyAnswer(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            message="There is no offset information to delete.",
        )
    else:
        answered = failed.get(topic_id, KeyAnswer())
    return DeleteShareGroupOffsetsResponseTopic(
        topic_name=name,
        topic_id=topic_id or NO_TOPIC_ID,
        error_code=answered.code,
        error_message=answered.message,
    )
