"""DescribeShareGroupOffsets (90), versions 0-1: lists the start offsets of share groups (KIP-932).

From version 1 on it includes the lag: the unfinished records after the start offset (KIP-1226).
"""

import asyncio
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.broker.access.share_offsets import describe_share_group_offsets
from ottla.broker.configs.features import require_feature
from ottla.broker.groups import Groups
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.portions import in_portions, items, once
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.view import ClusterView
from ottla.broker.share.end_offsets import EndOffsets
from ottla.broker.share.messages import SUMMARY
from ottla.broker.share.persister import Persister
from ottla.group.share.groups import Allowed
from ottla.metadata.features import SHARE
from ottla.share.coordinator import KeyAnswer
from ottla.share.records import UNKNOWN, ShareKey, ShareState
from ottla.wire.messages.share_group_offsets import (
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
    """Add the requested topics; None means all topics."""
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
    """Serves DescribeShareGroupOffsets."""

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
        # The answers to all portions are kept until the last, which slows down garbage collection.
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
        """Ask the coordinators of each group's state.

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
            each: ShareKey(group_id, topic.id, each.partition)
            for each in partitions
            if tuple(each) in begun and (topic := self.view.image.topic(each.topic)) is not None
        }
        arguments = dict.fromkeys(keys.values(), UNKNOWN)
        answers, ends = await asyncio.gather(
            self.persister.ask(SUMMARY, arguments, patience_ms=_PATIENCE_MS),
            self.end_offsets.find(keys),
        )
        topics: dict[str, list[DescribeShareGroupOffsetsResponsePartition]] = {}
        for each in partitions:
            key = keys.get(each)
            answered = KeyAnswer(state=ShareState(0, UNKNOWN)) if key is None else answers[key]
            topics.setdefault(each.topic, []).append(_part(each, answered, ends.get(each)))
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
    """Return the requested partitions; if none is named, all for which the group has state."""
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
