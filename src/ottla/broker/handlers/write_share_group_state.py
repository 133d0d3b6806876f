"""WriteShareGroupState (85), versions 0-1: writes a share group's state (KIP-932).

Between brokers: partition leaders and group coordinators send it.
"""

from dataclasses import dataclass

from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import brokers_only
from ottla.broker.requests.request import RequestContext
from ottla.broker.share.messages import WRITE
from ottla.broker.share.persister import Persister
from ottla.wire.messages.share_group_state import (
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)
from ottla.wire.notation import Message


@dataclass(slots=True, eq=False, repr=False)
class WriteShareGroupState(Handler):
    """Serves WriteShareGroupState."""

    api = Api(
        WriteShareGroupStateRequest,
        WriteShareGroupStateResponse,
        Versions(0, 1),
        needs=brokers_only,
        on_error=WRITE.failed,
    )

    persister: Persister

    async def handle(self, _request: RequestContext, body: WriteShareGroupStateRequest) -> Message:
        """Have the coordinator of each partition's state decide."""
        answers = await self.persister.carry_out(WRITE, WRITE.of_request(body))
        return WRITE.answer(answers.items())
