"""Initializes and deletes the share state of a group's partitions, and updates the group."""

from collections.abc import Iterable

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.groups import Groups
from ottla.broker.requests.request import RequestContext
from ottla.broker.share.messages import DELETE, INITIALIZE, Begin
from ottla.broker.share.persister import Persister
from ottla.group.records.share import TopicState
from ottla.group.share.groups import Allowed
from ottla.share.coordinator import KeyAnswer
from ottla.share.records import ShareKey

# How long a heartbeat that needs new state waits for the share coordinators.
_PATIENCE_MS = 5_000


class GroupShareStates:
    """Initializes and deletes the state of many partitions of one group.

    The group records which partitions have initialized state; only these are assigned to members.
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
        """Initialize the state of partitions, and record the successful ones in the group."""
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
        """Delete the state of topics, and record the successful ones in the group."""
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
    """Raise OttlaError if a group must not be changed.

    `otherwise` is the message for all errors except NON_EMPTY_GROUP.
    """
    if allowed.code is ErrorCode.NON_EMPTY_GROUP:
        raise OttlaError(
            allowed.code, f"The group {group_id} is not empty: its members must leave first."
        )
    if allowed.code is not ErrorCode.NONE:
        raise OttlaError(allowed.code, otherwise)


def keys_of(group_id: str, topics: Iterable[TopicState]) -> list[ShareKey]:
    """Return the keys of the share partitions of these topics."""
    return [
        ShareKey(group_id, topic.id, index)
        for topic in topics
        for index in sorted(topic.partitions)
    ]


def _succeeded(
    group_id: str, topic: TopicState, answers: dict[ShareKey, KeyAnswer]
) -> frozenset[int]:
    """Return the partitions of a topic whose answer has no error."""
    return frozenset(
        index
        for index in topic.partitions
        if answers[ShareKey(group_id, topic.id, index)].code is ErrorCode.NONE
    )
