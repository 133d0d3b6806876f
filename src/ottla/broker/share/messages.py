"""Questions about share state between brokers: as requests, as commands, and their answers.

Each of the five is an `Operation` on some keys, with what it says of each.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from ottla.base.errors import ErrorCode
from ottla.broker.share.state_shard import Command
from ottla.share.coordinator import Answered, Write
from ottla.share.records import UNKNOWN, ShareKey, ShareState
from ottla.share.states import Delivery, StateBatch
from ottla.wire.messages import delete_share_group_state as delete
from ottla.wire.messages import initialize_share_group_state as initialize
from ottla.wire.messages import read_share_group_state as read
from ottla.wire.messages import read_share_group_state_summary as summary
from ottla.wire.messages import write_share_group_state as write
from ottla.wire.notation import Message


@dataclass(frozen=True, slots=True)
class Operation:
    """One of the five. What it says of a key is its part of the request.

    `part` and `told` turn what is said, and what became of it, into parts of messages; `says` and
    `answered` turn these back.
    """

    request: Callable[[str, list[Any]], Message]
    topic: Callable[[UUID, list[Any]], Any]
    part: Callable[[int, Any], Any]
    says: Callable[[Any], Any]
    command: Callable[[ShareKey, Any], Command]
    response: Callable[[list[Any]], Message]
    result: Callable[[UUID, list[Any]], Any]
    told: Callable[[int, Answered], Any]
    answered: Callable[[Any], Answered]

    def asked(self, group_id: str, said: Mapping[ShareKey, Any]) -> Message:
        """The request about keys of one group."""
        topics: dict[UUID, list[Any]] = {}
        for key, what in said.items():
            topics.setdefault(key.topic_id, []).append(self.part(key.partition, what))
        return self.request(group_id, [self.topic(*each) for each in topics.items()])

    def of_request(self, body: Any) -> dict[ShareKey, Any]:
        """What a request says of each key."""
        return {
            ShareKey(body.group_id, topic.topic_id, part.partition): self.says(part)
            for topic in body.topics
            for part in topic.partitions
        }

    def answer(self, answers: Iterable[tuple[ShareKey, Answered]]) -> Message:
        """The response about keys of one group."""
        topics: dict[UUID, list[Any]] = {}
        for key, answered in answers:
            topics.setdefault(key.topic_id, []).append(self.told(key.partition, answered))
        return self.response([self.result(*each) for each in topics.items()])

    def of_response(self, group_id: str, body: Any) -> dict[ShareKey, Answered]:
        """What a response says of each key."""
        return {
            ShareKey(group_id, topic.topic_id, part.partition): self.answered(part)
            for topic in body.results
            for part in topic.partitions
        }


@dataclass(frozen=True, slots=True)
class Begin:
    """State begins: in which epoch, and where; UNKNOWN where the leader is to find that out."""

    state_epoch: int
    start_offset: int = UNKNOWN


def _outcome(part: Any) -> Answered:
    return Answered(ErrorCode(part.error_code), message=part.error_message)


def _batches(parts: Iterable[Any]) -> tuple[StateBatch, ...]:
    return tuple(
        StateBatch(
            each.first_offset, each.last_offset, Delivery(each.delivery_state), each.delivery_count
        )
        for each in parts
    )


def _parts(kind: Any, batches: Iterable[StateBatch]) -> list[Any]:
    return [
        kind(first_offset=first, last_offset=last, delivery_state=state, delivery_count=deliveries)
        for first, last, state, deliveries in batches
    ]


def _done(result: Callable[..., Any]) -> Callable[[int, Answered], Any]:
    """The part of a response that tells of no more than whether it was done."""
    return lambda index, answered: result(
        partition=index, error_code=answered.code, error_message=answered.message
    )


INITIALIZE = Operation(
    lambda group_id, topics: initialize.InitializeShareGroupStateRequest(
        group_id=group_id, topics=topics
    ),
    lambda topic_id, parts: initialize.InitializeStateData(topic_id=topic_id, partitions=parts),
    lambda index, begin: initialize.PartitionData(
        partition=index, state_epoch=begin.state_epoch, start_offset=begin.start_offset
    ),
    lambda part: Begin(part.state_epoch, part.start_offset),
    lambda key, begin: (
        lambda coordinator, ticket, now_ms: coordinator.initialize(
            ticket, key, begin.state_epoch, begin.start_offset, now_ms
        )
    ),
    lambda results: initialize.InitializeShareGroupStateResponse(results=results),
    lambda topic_id, parts: initialize.InitializeStateResult(topic_id=topic_id, partitions=parts),
    _done(initialize.PartitionResult),
    _outcome,
)


def _read_told(index: int, answered: Answered) -> read.PartitionResult:
    state = answered.state or ShareState(0, UNKNOWN)
    return read.PartitionResult(
        partition=index,
        error_code=answered.code,
        error_message=answered.message,
        state_epoch=state.state_epoch,
        start_offset=state.start_offset,
        state_batches=_parts(read.StateBatch, state.batches),
    )


def _read_answered(part: read.PartitionResult) -> Answered:
    if part.error_code:
        return _outcome(part)
    return Answered(
        state=ShareState(part.state_epoch, part.start_offset, batches=_batches(part.state_batches))
    )


# What is said of a key is the leader's epoch.
READ = Operation(
    lambda group_id, topics: read.ReadShareGroupStateRequest(group_id=group_id, topics=topics),
    lambda topic_id, parts: read.ReadStateData(topic_id=topic_id, partitions=parts),
    lambda index, epoch: read.PartitionData(partition=index, leader_epoch=epoch),
    lambda part: part.leader_epoch,
    lambda key, epoch: lambda coordinator, ticket, _now_ms: coordinator.read(ticket, key, epoch),
    lambda results: read.ReadShareGroupStateResponse(results=results),
    lambda topic_id, parts: read.ReadStateResult(topic_id=topic_id, partitions=parts),
    _read_told,
    _read_answered,
)


# What is said of a key is a Write.
WRITE = Operation(
    lambda group_id, topics: write.WriteShareGroupStateRequest(group_id=group_id, topics=topics),
    lambda topic_id, parts: write.WriteStateData(topic_id=topic_id, partitions=parts),
    lambda index, written: write.PartitionData(
        partition=index,
        state_epoch=written.state_epoch,
        leader_epoch=written.leader_epoch,
        start_offset=written.start_offset,
        delivery_complete_count=written.complete_count,
        state_batches=_parts(write.StateBatch, written.batches),
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
    lambda results: write.WriteShareGroupStateResponse(results=results),
    lambda topic_id, parts: write.WriteStateResult(topic_id=topic_id, partitions=parts),
    _done(write.PartitionResult),
    _outcome,
)


# Nothing is said of a key.
DELETE = Operation(
    lambda group_id, topics: delete.DeleteShareGroupStateRequest(group_id=group_id, topics=topics),
    lambda topic_id, parts: delete.DeleteStateData(topic_id=topic_id, partitions=parts),
    lambda index, _said: delete.PartitionData(partition=index),
    lambda _part: None,
    lambda key, _said: lambda coordinator, ticket, _now_ms: coordinator.delete(ticket, key),
    lambda results: delete.DeleteShareGroupStateResponse(results=results),
    lambda topic_id, parts: delete.DeleteStateResult(topic_id=topic_id, partitions=parts),
    _done(delete.PartitionResult),
    _outcome,
)


def _summary_told(index: int, answered: Answered) -> summary.PartitionResult:
    state = answered.state or ShareState(0, UNKNOWN)
    return summary.PartitionResult(
        partition=index,
        error_code=answered.code,
        error_message=answered.message,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.complete_count,
    )


def _summary_answered(part: summary.PartitionResult) -> Answered:
    if part.error_code:
        return _outcome(part)
    state = ShareState(
        part.state_epoch, part.start_offset, part.leader_epoch, part.delivery_complete_count
    )
    return Answered(state=state)


# What is said of a key is the leader's epoch, as far as it is known; nobody minds.
SUMMARY = Operation(
    lambda group_id, topics: summary.ReadShareGroupStateSummaryRequest(
        group_id=group_id, topics=topics
    ),
    lambda topic_id, parts: summary.ReadStateSummaryData(topic_id=topic_id, partitions=parts),
    lambda index, epoch: summary.PartitionData(partition=index, leader_epoch=epoch),
    lambda part: part.leader_epoch,
    lambda key, _epoch: lambda coordinator, ticket, _now_ms: coordinator.summary(ticket, key),
    lambda results: summary.ReadShareGroupStateSummaryResponse(results=results),
    lambda topic_id, parts: summary.ReadStateSummaryResult(topic_id=topic_id, partitions=parts),
    _summary_told,
    _summary_answered,
)
