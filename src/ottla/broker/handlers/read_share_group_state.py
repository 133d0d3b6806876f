"""ReadShareGroupState (84), version 0: a share group's state of partitions (KIP-932).

Between brokers: sent by the leaders of partitions and by group coordinators.
"""

from dataclasses import dataclass

from ottla.base.errors import ErrorCode
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import brokers_only
from ottla.broker.requests.request import RequestContext
from ottla.broker.share.messages import READ
from ottla.broker.share.persister import Persister
from ottla.share.coordinator import KeyAnswer
from ottla.wire.messages.read_share_group_state import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
)
from ottla.wire.notation import Message


@dataclass(slots=True, eq=False, repr=False)
class ReadShareGroupState(Handler):
    """Serves ReadShareGroupState."""

    api = Api(
        ReadShareGroupStateRequest, ReadShareGroupStateResponse, Versions(0, 0), needs=brokers_only
    )

    persister: Persister

    async def handle(self, _request: RequestContext, body: ReadShareGroupStateRequest) -> Message:
        """Have the coordinator of each partition's state decide."""
        answers = await self.persister.carry_out(READ, READ.of_request(body))
        return READ.answer(answers.items())

    @staticmethod
    def on_error(
        body: ReadShareGroupStateRequest, code: ErrorCode, message: str | None, _version: int
    ) -> Message:
        """The same error for every partition."""
        failed = KeyAnswer(code, message=message)
        return READ.answer((key, failed) for key in READ.of_request(body))
