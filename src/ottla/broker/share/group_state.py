"""Initializes and deletes the state of a share group's partitions, and notes so in the group."""

from collections.abc import Iterable

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.groups import Groups
from ottla.broker.requests.request import RequestContext
from ottla.broker.share.messages import DELETE, INITIALIZE, Begin
from ottla.broker.share.persister import Persister
from ottla.group.share.groups import Allowed
from ottla.group.share.records import TopicState
from ottla.share.coordinator import KeyAnswer
from ottla.share.records import ShareKey

# How long a member waits for its first partitions.
_PATIENCE_MS = 5_000


class GroupShareStates:
    """The state of partitions as a whole group's: the group knows which of its partitions have one.

    Members are assigned only partitions whose state is initialized.
    """

    def __init__(self, groups: Groups, persister: Persister) -> None:
        self._groups = groups
        self._persister = persister

    async def initialize(
        self,
        request: RequestContext,
        group_id: str,
        begins: dict[ShareKey, Begin],
        topics: Iterable[TopicState],
    ) -> dict[ShareKey, KeyAnswer]:
        """Initialize the state of partitions, and note in the group which succeeded."""
        answers = await self._persister.ask(INITIALIZE, begins, patience_ms=_PATIENCE_MS)
        begun = []
        for topic in topics:
            done = _succeeded(group_id, topic, answers)
            if done:
                begun.append(TopicState(topic.id, topic.name, done))
        if begun:
            await self._groups.run_and_wait(
                request,
                group_id,
                lambda coordinator, call, at: coordinator.share.note_begun(
                    call, group_id, begun, at
                ),
            )
        return answers

    async def delete(
        self, request: RequestContext, group_id: str, topics: Iterable[TopicState]
    ) -> dict[ShareKey, KeyAnswer]:
        """Delete the state of topics, and note in the group which succeeded."""
        topics = list(topics)
        answers = await self._persister.ask(
            DELETE, dict.fromkeys(keys_of(group_id, topics)), patience_ms=_PATIENCE_MS
        )
        gone = [
            topic.id for topic in topics if _succeeded(group_id, topic, answers) == topic.partitions
        ]
        if gone:
            await self._groups.run_and_wait(
                request,
                group_id,
                lambda coordinator, call, at: coordinator.share.note_deleted(
                    call, group_id, gone, at
                ),
            )
        return answers


def require(allowed: Allowed, group_id: str, otherwise: str) -> None:
    """Raise OttlaError if a group must not be changed; `otherwise` unless it has members."""
    if allowed.code is ErrorCode.NON_EMPTY_GROUP:
        raise OttlaError(
            allowed.code, f"The group {group_id} is not empty: its members must leave first."
        )
    if allowed.code is not ErrorCode.NONE:
        raise OttlaError(allowed.code, otherwise)


def keys_of(group_id: str, topics: Iterable[TopicState]) -> list[ShareKey]:
    """Every partition of these topics."""
    return [
        ShareKey(group_id, topic.id, index)
        for topic in topics
        for index in sorted(topic.partitions)
    ]


def _succeeded(
    group_id: str, topic: TopicState, answers: dict[ShareKey, KeyAnswer]
) -> frozenset[int]:
    """The partitions of a topic that were answered without an error."""
    return frozenset(
        index
        for index in topic.partitions
        if answers[ShareKey(group_id, topic.id, index)].code is ErrorCode.NONE
    )
