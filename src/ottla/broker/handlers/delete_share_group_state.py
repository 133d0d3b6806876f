"""DeleteShareGroupState (86), version 0: deletes a share group's state of partitions (KIP-932).

Between brokers: partition leaders and group coordinators send it.
"""

from dataclasses import dataclass

from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import brokers_only
from ottla.broker.requests.request import RequestContext
from ottla.broker.share.messages import DELETE
from ottla.broker.share.persister import Persister
from ottla.wire.messages.share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
)
from ottla.wire.notation import Message


@dataclass(slots=True, eq=False, repr=False)
class DeleteShareGroupState(Handler):
    """Serves DeleteShareGroupState."""

    api = Api(
        DeleteShareGroupStateRequest,
        DeleteShareGroupStateResponse,
        Versions(0, 0),
        needs=brokers_only,
        on_error=DELETE.failed,
    )

    persister: Persister

    async def handle(self, _request: RequestContext, body: DeleteShareGroupStateRequest) -> Message:
        """Have the coordinator of each partition's state decide."""
        answers = await self.persister.carry_out(DELETE, DELETE.of_request(body))
        return DELETE.answer(answers.items())
