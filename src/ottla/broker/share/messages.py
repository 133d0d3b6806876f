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
from ottla.wire.messages import share_group_state as wire
from ottla.wire.notation import Message


@dataclass(frozen=True, slots=True)
class StateOperation:
    """One of the five requests. Its argument is the request's data for one share partition.

    `part` converts the fields after the partition number of an argument to those of a part of the
    request, and `argument` converts the part back. `state` returns the state in a part of the
    response, if the response has one.
    """

    request: Any
    response: Any
    part: Callable[[Any], dict[str, Any]]
    argument: Callable[[Any], Any]
    command: Callable[[ShareKey, Any], Command]
    state: Callable[[Any], ShareState | None] = lambda _part: None

    def request_for(self, group_id: str, arguments: Mapping[ShareKey, Any]) -> Message:
        """Build the request for share partitions of one group."""
        topic = _element(self.request, "topics")
        parts = ((key, self.part(argument)) for key, argument in arguments.items())
        request: Message = self.request(group_id=group_id, topics=_by_topic(topic, parts))
        return request

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
        result = _element(self.response, "results")
        parts = ((key, _result_fields(answered)) for key, answered in answers)
        response: Message = self.response(results=_by_topic(result, parts))
        return response

    def of_response(self, group_id: str, body: Any) -> dict[ShareKey, KeyAnswer]:
        """Return the answer for each share partition in a response."""
        return {
            ShareKey(group_id, topic.topic_id, part.partition): KeyAnswer(
                ErrorCode(part.error_code),
                None if part.error_code else self.state(part),
                part.error_message,
            )
            for topic in body.results
            for part in topic.partitions
        }


def _element(kind: type[Message], name: str) -> Any:
    """Return the class of the elements of a list in a message."""
    return next(field.element for field in kind.__fields__ if field.name == name)


def _by_topic(topic: Any, parts: Iterable[tuple[ShareKey, dict[str, Any]]]) -> list[Any]:
    """Build the list of topics with their partitions, leaving out fields that a part lacks."""
    kind = _element(topic, "partitions")
    known = {field.name for field in kind.__fields__}
    found: dict[UUID, list[Any]] = {}
    for key, fields in parts:
        own = {name: value for name, value in fields.items() if name in known}
        found.setdefault(key.topic_id, []).append(kind(partition=key.partition, **own))
    return [topic(topic_id=topic_id, partitions=some) for topic_id, some in found.items()]


def _result_fields(answered: KeyAnswer) -> dict[str, Any]:
    state = answered.state or ShareState(0, UNKNOWN)
    return {
        "error_code": answered.code,
        "error_message": answered.message,
        "state_epoch": state.state_epoch,
        "leader_epoch": state.leader_epoch,
        "start_offset": state.start_offset,
        "delivery_complete_count": state.complete_count,
        "state_batches": _parts(state.batches),
    }


@dataclass(frozen=True, slots=True)
class Begin:
    """The state epoch and start offset of new state.

    If the start offset is UNKNOWN, the leader determines it by share.auto.offset.reset.
    """

    state_epoch: int
    start_offset: int = UNKNOWN


def _batches(parts: Iterable[wire.StateBatch]) -> tuple[StateBatch, ...]:
    return tuple(
        StateBatch(
            each.first_offset,
            each.last_offset,
            DeliveryState(each.delivery_state),
            each.delivery_count,
        )
        for each in parts
    )


def _parts(batches: Iterable[StateBatch]) -> list[wire.StateBatch]:
    return [
        wire.StateBatch(
            first_offset=first, last_offset=last, delivery_state=state, delivery_count=deliveries
        )
        for first, last, state, deliveries in batches
    ]


INITIALIZE = StateOperation(
    wire.InitializeShareGroupStateRequest,
    wire.InitializeShareGroupStateResponse,
    lambda begin: {"state_epoch": begin.state_epoch, "start_offset": begin.start_offset},
    lambda part: Begin(part.state_epoch, part.start_offset),
    lambda key, begin: (
        lambda coordinator, ticket, now_ms: coordinator.initialize(
            ticket, key, begin.state_epoch, begin.start_offset, now_ms
        )
    ),
)

# The argument is the leader's epoch.
READ = StateOperation(
    wire.ReadShareGroupStateRequest,
    wire.ReadShareGroupStateResponse,
    lambda epoch: {"leader_epoch": epoch},
    lambda part: part.leader_epoch,
    lambda key, epoch: lambda coordinator, ticket, _now_ms: coordinator.read(ticket, key, epoch),
    lambda part: ShareState(
        part.state_epoch, part.start_offset, batches=_batches(part.state_batches)
    ),
)

# The argument is a Write.
WRITE = StateOperation(
    wire.WriteShareGroupStateRequest,
    wire.WriteShareGroupStateResponse,
    lambda written: {
        "state_epoch": written.state_epoch,
        "leader_epoch": written.leader_epoch,
        "start_offset": written.start_offset,
        "delivery_complete_count": written.complete_count,
        "state_batches": _parts(written.batches),
    },
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
)

# The argument is None.
DELETE = StateOperation(
    wire.DeleteShareGroupStateRequest,
    wire.DeleteShareGroupStateResponse,
    lambda _argument: {},
    lambda _part: None,
    lambda key, _argument: lambda coordinator, ticket, _now_ms: coordinator.delete(ticket, key),
)

# The argument is the leader's epoch; coordinators ignore it.
SUMMARY = StateOperation(
    wire.ReadShareGroupStateSummaryRequest,
    wire.ReadShareGroupStateSummaryResponse,
    lambda epoch: {"leader_epoch": epoch},
    lambda part: part.leader_epoch,
    lambda key, _epoch: lambda coordinator, ticket, _now_ms: coordinator.summary(ticket, key),
    lambda part: ShareState(
        part.state_epoch, part.start_offset, part.leader_epoch, part.delivery_complete_count
    ),
)
