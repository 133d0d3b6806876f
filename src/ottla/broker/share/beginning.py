"""Has the state of partitions begun for a group before its members get them, and deleted later."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.groups.commands import command
from ottla.broker.requests.request import RequestContext
from ottla.broker.share.messages import DELETE, INITIALIZE, Begin
from ottla.group.share.groups import Allowed
from ottla.group.share.records import TopicState
from ottla.share.coordinator import Answered
from ottla.share.records import ShareKey

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker

# How long a member waits for its first partitions.
_PATIENCE_MS = 5_000


def require(allowed: Allowed, group_id: str, otherwise: str) -> None:
    """Raise OttlaError where a group is not to be changed: for its members, or `otherwise`."""
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


async def begin_state(
    broker: "Broker",
    request: RequestContext,
    group_id: str,
    begins: dict[ShareKey, Begin],
    topics: Iterable[TopicState],
) -> dict[ShareKey, Answered]:
    """Begin the state of partitions, and note in the group of which that was done."""
    answers = await broker.sharing.persister.ask(INITIALIZE, begins, patience_ms=_PATIENCE_MS)
    begun = []
    for topic in topics:
        done = _done(group_id, topic, answers)
        if done:
            begun.append(TopicState(topic.id, topic.name, done))
    if begun:
        await command(
            broker,
            request,
            group_id,
            lambda coordinator, call, at: coordinator.share.note_begun(call, group_id, begun, at),
        )
    return answers


async def delete_state(
    broker: "Broker", request: RequestContext, group_id: str, topics: Iterable[TopicState]
) -> dict[ShareKey, Answered]:
    """Delete the state of topics, and note in the group of which that was done."""
    topics = list(topics)
    answers = await broker.sharing.persister.ask(
        DELETE, dict.fromkeys(keys_of(group_id, topics)), patience_ms=_PATIENCE_MS
    )
    gone = [topic.id for topic in topics if _done(group_id, topic, answers) == topic.partitions]
    if gone:
        await command(
            broker,
            request,
            group_id,
            lambda coordinator, call, at: coordinator.share.note_deleted(call, group_id, gone, at),
        )
    return answers


def _done(group_id: str, topic: TopicState, answers: dict[ShareKey, Answered]) -> frozenset[int]:
    """The partitions of a topic that nothing went wrong with."""
    return frozenset(
        index
        for index in topic.partitions
        if answers[ShareKey(group_id, topic.id, index)].code is ErrorCode.NONE
    )
