"""The five requests between brokers about share state, each defined as a `StateOperation`.

An operation converts between its request, the commands for the coordinator, and its response.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from ottla.base.errors import ErrorCode
from ottla.broker.share.states import Command
from ottla.share.coordinator import KeyAnswer, Write
from ottla.share.records import UNKNOWN, ShareKey, ShareState
from ottla.share.states import DeliveryState, StateBatch
from ottla.wire.messages import share_group_state
from ottla.wire.notation import Message


@dataclass(frozen=True, slots=True)
class StateOperation:
    """One of the five requests. Its argument is the request's data for one share partition.

    `part` converts an argument to its part of the request, and `argument` converts it back.
    `result_part` converts an answer to its part of the response, and `answered` converts it back.
    """

    request: Callable[[str, list[Any]], Message]
    topic: Callable[[UUID, list[Any]], Any]
    part: Callable[[int, Any], Any]
    argument: Callable[[Any], Any]
    command: Callable[[ShareKey, Any], Command]
    response: Callable[[list[Any]], Message]
    result: Callable[[UUID, list[Any]], Any]
    result_part: Callable[[int, KeyAnswer], Any]
    answered: Callable[[Any], KeyAnswer]

    def request_for(self, group_id: str, arguments: Mapping[ShareKey, Any]) -> Message:
        """Build the request for share partitions of one group."""
        topics: dict[UUID, list[Any]] = {}
        for key, argument in arguments.items():
            topics.setdefault(key.topic_id, []).append(self.part(key.partition, argument))
        return self.request(group_id, [self.topic(*each) for each in topics.items()])

    def of_request(self, body: Any) -> dict[ShareKey, Any]:
        """Return the argument for each share partition in a request."""
        return {
            ShareKey(body.group_id, topic.topic_id, part.partition): self.argument(part)
            for topic in body.topics
            for part in topic.partitions
        }

    def failed(self, body: Any, code: ErrorCode, message: str | None) -> Any:
        """Build a response with the same error for every share partition."""
        answer = KeyAnswer(code, message=message)
        return self.answer((key, answer) for key in self.of_request(body))

    def answer(self, answers: Iterable[tuple[ShareKey, KeyAnswer]]) -> Message:
        """Build the response for share partitions of one group."""
        topics: dict[UUID, list[Any]] = {}
        for key, answered in answers:
            topics.setdefault(key.topic_id, []).append(self.result_part(key.partition, answered))
        return self.response([self.result(*each) for each in topics.items()])

    def of_response(self, group_id: str, body: Any) -> dict[ShareKey, KeyAnswer]:
        """Return the answer for each share partition in a response."""
        return {
            ShareKey(group_id, topic.topic_id, part.partition): self.answered(part)
            for topic in body.results
            for part in topic.partitions
        }


@dataclass(frozen=True, slots=True)
class Begin:
    """The state epoch and start offset of new state.

    If the start offset is UNKNOWN, the leader determines it by share.auto.offset.reset.
    """

    state_epoch: int
    start_offset: int = UNKNOWN


def _outcome(part: Any) -> KeyAnswer:
    return KeyAnswer(ErrorCode(part.error_code), message=part.error_message)


def _batches(parts: Iterable[Any]) -> tuple[StateBatch, ...]:
    return tuple(
        StateBatch(
            each.first_offset,
            each.last_offset,
            DeliveryState(each.delivery_state),
            each.delivery_count,
        )
        for each in parts
    )


def _parts(kind: Any, batches: Iterable[StateBatch]) -> list[Any]:
    return [
        kind(first_offset=first, last_offset=last, delivery_state=state, delivery_count=deliveries)
        for first, last, state, deliveries in batches
    ]


def _done(result: Callable[..., Any]) -> Callable[[int, KeyAnswer], Any]:
    """Return a `result_part` for responses that have only an error code and message."""
    return lambda index, answered: result(
        partition=index, error_code=answered.code, error_message=answered.message
    )


INITIALIZE = StateOperation(
    lambda group_id, topics: share_group_state.InitializeShareGroupStateRequest(
        group_id=group_id, topics=topics
    ),
    lambda topic_id, parts: share_group_state.InitializeStateData(
        topic_id=topic_id, partitions=parts
    ),
    lambda index, begin: share_group_state.InitializePartitionData(
        partition=index, state_epoch=begin.state_epoch, start_offset=begin.start_offset
    ),
    lambda part: Begin(part.state_epoch, part.start_offset),
    lambda key, begin: (
        lambda coordinator, ticket, now_ms: coordinator.initialize(
            ticket, key, begin.state_epoch, begin.start_offset, now_ms
        )
    ),
    lambda results: share_group_state.InitializeShareGroupStateResponse(results=results),
    lambda topic_id, parts: share_group_state.InitializeStateResult(
        topic_id=topic_id, partitions=parts
    ),
    _done(share_group_state.PartitionResult),
    _outcome,
)


def _read_part(index: int, answered: KeyAnswer) -> share_group_state.ReadPartitionResult:
    state = answered.state or ShareState(0, UNKNOWN)
    return share_group_state.ReadPartitionResult(
        partition=index,
        error_code=answered.code,
        error_message=answered.message,
        state_epoch=state.state_epoch,
        start_offset=state.start_offset,
        state_batches=_parts(share_group_state.StateBatch, state.batches),
    )


def _read_answered(part: share_group_state.ReadPartitionResult) -> KeyAnswer:
    if part.error_code:
        return _outcome(part)
    return KeyAnswer(
        state=ShareState(part.state_epoch, part.start_offset, batches=_batches(part.state_batches))
    )


# The argument is the leader's epoch.
READ = StateOperation(
    lambda group_id, topics: share_group_state.ReadShareGroupStateRequest(
        group_id=group_id, topics=topics
    ),
    lambda topic_id, parts: share_group_state.ReadStateData(topic_id=topic_id, partitions=parts),
    lambda index, epoch: share_group_state.ReadPartitionData(partition=index, leader_epoch=epoch),
    lambda part: part.leader_epoch,
    lambda key, epoch: lambda coordinator, ticket, _now_ms: coordinator.read(ticket, key, epoch),
    lambda results: share_group_state.ReadShareGroupStateResponse(results=results),
    lambda topic_id, parts: share_group_state.ReadStateResult(topic_id=topic_id, partitions=parts),
    _read_part,
    _read_answered,
)


# The argument is a Write.
WRITE = StateOperation(
    lambda group_id, topics: share_group_state.WriteShareGroupStateRequest(
        group_id=group_id, topics=topics
    ),
    lambda topic_id, parts: share_group_state.WriteStateData(topic_id=topic_id, partitions=parts),
    lambda index, written: share_group_state.WritePartitionData(
        partition=index,
        state_epoch=written.state_epoch,
        leader_epoch=written.leader_epoch,
        start_offset=written.start_offset,
        delivery_complete_count=written.complete_count,
        state_batches=_parts(share_group_state.StateBatch, written.batches),
    ),
    lambda part: Write(
        part.state_epoch,
        part.leader_epoch,
        part.start_offset,
        part.delivery_complete_count,
        _batches(part.state_batches),
    ),
    lambda key, written: (
        lambda coordinator, ticket, now_ms: coordinator.write(ticket, key, written, now_ms)
    ),
    lambda results: share_group_state.WriteShareGroupStateResponse(results=results),
    lambda topic_id, parts: share_group_state.WriteStateResult(topic_id=topic_id, partitions=parts),
    _done(share_group_state.PartitionResult),
    _outcome,
)


# The argument is None.
DELETE = StateOperation(
    lambda group_id, topics: share_group_state.DeleteShareGroupStateRequest(
        group_id=group_id, topics=topics
    ),
    lambda topic_id, parts: share_group_state.DeleteStateData(topic_id=topic_id, partitions=parts),
    lambda index, _argument: share_group_state.DeletePartitionData(partition=index),
    lambda _part: None,
    lambda key, _argument: lambda coordinator, ticket, _now_ms: coordinator.delete(ticket, key),
    lambda results: share_group_state.DeleteShareGroupStateResponse(results=results),
    lambda topic_id, parts: share_group_state.DeleteStateResult(
        topic_id=topic_id, partitions=parts
    ),
    _done(share_group_state.PartitionResult),
    _outcome,
)


def _summary_part(index: int, answered: KeyAnswer) -> share_group_state.SummaryPartitionResult:
    state = answered.state or ShareState(0, UNKNOWN)
    return share_group_state.SummaryPartitionResult(
        partition=index,
        error_code=answered.code,
        error_message=answered.message,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.complete_count,
    )


def _summary_answered(part: share_group_state.SummaryPartitionResult) -> KeyAnswer:
    if part.error_code:
        return _outcome(part)
    state = ShareState(
        part.state_epoch, part.start_offset, part.leader_epoch, part.delivery_complete_count
    )
    return KeyAnswer(state=state)


# The argument is the leader's epoch; coordinators ignore it.
SUMMARY = StateOperation(
    lambda group_id, topics: share_group_state.ReadShareGroupStateSummaryRequest(
        group_id=group_id, topics=topics
    ),
    lambda topic_id, parts: share_group_state.ReadStateSummaryData(
        topic_id=topic_id, partitions=parts
    ),
    lambda index, epoch: share_group_state.ReadPartitionData(partition=index, leader_epoch=epoch),
    lambda part: part.leader_epoch,
    lambda key, _epoch: lambda coordinator, ticket, _now_ms: coordinator.summary(ticket, key),
    lambda results: share_group_state.ReadShareGroupStateSummaryResponse(results=results),
    lambda topic_id, parts: share_group_state.ReadStateSummaryResult(
        topic_id=topic_id, partitions=parts
    ),
    _summary_part,
    _summary_answered,
)
