"""OffsetFetch (9), versions 1-10: returns the committed offsets of groups.

A request names one group before version 8, and may name many from 8 on (KIP-709). From version 2 on
null topics mean all topics; from 10 on topics have ids (KIP-848). The answer is sent when the
commits of its offsets are below the high watermark. If a request requires stable offsets (from 7
on, KIP-447), the answer has no offset that an open transaction may change.
"""

from dataclasses import dataclass
from functools import partial

from ottla.base.errors import ErrorCode
from ottla.base.ids import NO_TOPIC_ID, TopicId, TopicPartition
from ottla.broker.access.offsets import offset_fetch
from ottla.broker.groups import Groups
from ottla.broker.groups.answer import PartedResponse
from ottla.broker.groups.shard import Command
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.portions import in_portions, items, once
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.view import ClusterView
from ottla.group.coordinator.coordinator import GroupCoordinator
from ottla.group.model.turn import Call, GroupDecision, GroupReply, Moment
from ottla.group.offsets.stored_offsets import (
    FetchedOffset,
    FetchedTopic,
    nothing_committed,
)
from ottla.group.records.stored import CommittedOffset
from ottla.metadata.image import ClusterImage
from ottla.wire.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)

_GROUP_ERROR_FROM = 2
_MANY_GROUPS_FROM = 8
_TOPIC_IDS_FROM = 10


def _add_topics(group: OffsetFetchRequestGroup, other: OffsetFetchRequestGroup) -> None:
    """Add the requested topics; None means all topics."""
    if group.topics is None or other.topics is None:
        group.topics = None
    else:
        group.topics += other.topics


def _add_indexes(topic: OffsetFetchRequestTopic, other: OffsetFetchRequestTopic) -> None:
    topic.partition_indexes += other.partition_indexes


@dataclass(slots=True, eq=False, repr=False)
class OffsetFetch(Handler):
    """Serves OffsetFetch."""

    api = Api(
        OffsetFetchRequest,
        OffsetFetchResponse,
        Versions(1, 10),
        needs=offset_fetch,
        portions=in_portions(
            lambda body: body.groups,
            lambda response: response.groups,
            lambda group: group.group_id,
            error=lambda group: group.error_code,
            inner=items(
                lambda group: group.topics,
                lambda group: group.topics,
                lambda topic: (topic.name, topic.topic_id),
                inner=items(lambda topic: topic.partition_indexes, lambda topic: topic.partitions),
            ),
        )
        + in_portions(
            lambda body: body.topics,
            lambda response: response.topics,
            lambda topic: topic.name,
            inner=items(lambda topic: topic.partition_indexes, lambda topic: topic.partitions),
        ),
        once=once(
            lambda body: body.groups,
            lambda group: group.group_id,
            _add_topics,
            inner=once(
                lambda group: group.topics,
                lambda topic: (topic.name, topic.topic_id),
                _add_indexes,
                inner=once(lambda topic: topic.partition_indexes),
            ),
        )
        + once(
            lambda body: body.topics,
            lambda topic: topic.name,
            _add_indexes,
            inner=once(lambda topic: topic.partition_indexes),
        ),
    )

    view: ClusterView
    groups: Groups

    def handle(self, request: RequestContext, body: OffsetFetchRequest) -> None:
        """Ask the coordinator of each group for its offsets."""
        version = request.version
        groups = body.groups
        if version < _MANY_GROUPS_FROM:
            groups = [OffsetFetchRequestGroup(group_id=body.group_id, topics=body.topics)]

        def build(parts: list[OffsetFetchResponseGroup]) -> OffsetFetchResponse:
            if version >= _MANY_GROUPS_FROM:
                return OffsetFetchResponse(groups=parts)
            (part,) = parts
            if part.error_code:
                return self.on_error(body, ErrorCode(part.error_code), None, version)
            return OffsetFetchResponse(topics=part.topics)

        parted = PartedResponse(request, len(groups), build)
        image = self.view.image
        for index, group in enumerate(groups):
            answer = parted.part(index, partial(_failed_group, group.group_id))
            fetch = _fetch_by_id if version >= _TOPIC_IDS_FROM else _fetch_by_name
            self.groups.try_run(
                group.group_id,
                answer,
                partial(_for_member, group, partial(fetch, group, image, body.require_stable)),
            )

    @staticmethod
    def on_error(
        body: OffsetFetchRequest, code: ErrorCode, _message: str | None, version: int
    ) -> OffsetFetchResponse:
        """Return the error for the group; before version 2 for each of its partitions."""
        if version >= _MANY_GROUPS_FROM:
            return OffsetFetchResponse(
                groups=[_failed_group(group.group_id, code) for group in body.groups]
            )
        if version >= _GROUP_ERROR_FROM:
            return OffsetFetchResponse(error_code=code)
        return OffsetFetchResponse(
            topics=[
                OffsetFetchResponseTopic(
                    name=topic.name,
                    partitions=_partitions(
                        [nothing_committed(index, code) for index in topic.partition_indexes]
                    ),
                )
                for topic in body.topics or ()
            ]
        )


def _for_member(
    group: OffsetFetchRequestGroup,
    fetch: Command,
    coordinator: GroupCoordinator,
    call: Call,
    at: Moment,
) -> GroupDecision:
    """Check the member id and member epoch of a request of the consumer protocol."""
    code = coordinator.offsets.check_member(group.group_id, group.member_id, group.member_epoch)
    if code is ErrorCode.NONE:
        return fetch(coordinator, call, at)
    return GroupDecision(replies=[GroupReply(call.ticket, _failed_group(group.group_id, code))])


def _fetch_by_name(
    group: OffsetFetchRequestGroup,
    image: ClusterImage,
    is_stable: bool,
    coordinator: GroupCoordinator,
    call: Call,
    _at: Moment,
) -> GroupDecision:
    wanted = (
        None
        if group.topics is None
        else [(topic.name, topic.partition_indexes) for topic in group.topics]
    )

    def build(topics: list[FetchedTopic]) -> OffsetFetchResponseGroup:
        return OffsetFetchResponseGroup(
            group_id=group.group_id,
            topics=[
                OffsetFetchResponseTopic(name=topic, partitions=_partitions(offsets))
                for topic, offsets in topics
            ],
        )

    shown = partial(_is_shown, image)
    return coordinator.offsets.fetch(
        call, group.group_id, wanted, build, shown=shown, is_stable=is_stable
    )


def _fetch_by_id(
    group: OffsetFetchRequestGroup,
    image: ClusterImage,
    is_stable: bool,
    coordinator: GroupCoordinator,
    call: Call,
    _at: Moment,
) -> GroupDecision:
    """Answer with topic ids; if all topics are requested, topics without an id are left out."""
    wanted = None
    unknown: list[OffsetFetchResponseTopic] = []
    if group.topics is not None:
        wanted = []
        for topic in group.topics:
            known = image.topic_by_id(TopicId(topic.topic_id))
            if known is None:
                code = ErrorCode.UNKNOWN_TOPIC_ID
                missing = [nothing_committed(index, code) for index in topic.partition_indexes]
                unknown.append(
                    OffsetFetchResponseTopic(
                        topic_id=topic.topic_id, partitions=_partitions(missing)
                    )
                )
            else:
                wanted.append((known.name, topic.partition_indexes))

    def build(topics: list[FetchedTopic]) -> OffsetFetchResponseGroup:
        found = []
        for name, offsets in topics:
            known = image.topic(name)
            if known is not None and known.id != NO_TOPIC_ID:
                found.append(
                    OffsetFetchResponseTopic(topic_id=known.id, partitions=_partitions(offsets))
                )
        return OffsetFetchResponseGroup(group_id=group.group_id, topics=found + unknown)

    shown = partial(_is_shown, image)
    return coordinator.offsets.fetch(
        call, group.group_id, wanted, build, shown=shown, is_stable=is_stable
    )


def _is_shown(image: ClusterImage, name: TopicPartition, committed: CommittedOffset) -> bool:
    """Whether an offset was not committed in an earlier topic of that name: see `undo.trash`."""
    if committed.topic_id == NO_TOPIC_ID:
        return True
    known = image.topic(name.topic)
    return known is not None and known.id == committed.topic_id


def _partitions(offsets: list[FetchedOffset]) -> list[OffsetFetchResponsePartition]:
    return [
        OffsetFetchResponsePartition(
            partition_index=each.partition,
            committed_offset=each.offset,
            committed_leader_epoch=each.leader_epoch,
            metadata=each.metadata,
            error_code=each.error_code,
        )
        for each in offsets
    ]


def _failed_group(group_id: str, code: ErrorCode) -> OffsetFetchResponseGroup:
    return OffsetFetchResponseGroup(group_id=group_id, error_code=code)
