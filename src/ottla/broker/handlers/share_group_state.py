"""The handlers of share state requests, which partition leaders and group coordinators send."""

from dataclasses import dataclass
from typing import ClassVar

from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import brokers_only
from ottla.broker.requests.request import RequestContext
from ottla.broker.share.messages import DELETE, INITIALIZE, READ, SUMMARY, WRITE, StateOperation
from ottla.broker.share.persister import Persister
from ottla.wire.messages.share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)
from ottla.wire.notation import Message


@dataclass(slots=True, eq=False, repr=False)
class _StateHandler(Handler):
    """Lets the coordinators of the share partitions run one operation."""

    operation: ClassVar[StateOperation]

    persister: Persister

    async def handle(self, _request: RequestContext, body: Message) -> Message:
        """Return the answers of the coordinators."""
        answers = await self.persister.carry_out(self.operation, self.operation.of_request(body))
        return self.operation.answer(answers.items())


class InitializeShareGroupState(_StateHandler):
    """InitializeShareGroupState (83): creates a share group's state of partitions (KIP-932)."""

    __slots__ = ()

    api = Api(
        InitializeShareGroupStateRequest,
        InitializeShareGroupStateResponse,
        Versions(0, 0),
        needs=brokers_only,
        on_error=INITIALIZE.failed,
    )
    operation = INITIALIZE


class ReadShareGroupState(_StateHandler):
    """ReadShareGroupState (84): returns a share group's state of partitions (KIP-932)."""

    __slots__ = ()

    api = Api(
        ReadShareGroupStateRequest,
        ReadShareGroupStateResponse,
        Versions(0, 0),
        needs=brokers_only,
        on_error=READ.failed,
    )
    operation = READ


class ReadShareGroupStateSummary(_StateHandler):
    """ReadShareGroupStateSummary (87): returns a share group's start offsets (KIP-932)."""

    __slots__ = ()

    api = Api(
        ReadShareGroupStateSummaryRequest,
        ReadShareGroupStateSummaryResponse,
        Versions(0, 1),
        needs=brokers_only,
        on_error=SUMMARY.failed,
    )
    operation = SUMMARY


class WriteShareGroupState(_StateHandler):
    """WriteShareGroupState (85), versions 0-1: writes a share group's state (KIP-932)."""

    __slots__ = ()

    api = Api(
        WriteShareGroupStateRequest,
        WriteShareGroupStateResponse,
        Versions(0, 1),
        needs=brokers_only,
        on_error=WRITE.failed,
    )
    operation = WRITE


class DeleteShareGroupState(_StateHandler):
    """DeleteShareGroupState (86): deletes a share group's state of partitions (KIP-932)."""

    __slots__ = ()

    api = Api(
        DeleteShareGroupStateRequest,
        DeleteShareGroupStateResponse,
        Versions(0, 0),
        needs=brokers_only,
        on_error=DELETE.failed,
    )
    operation = DELETE
