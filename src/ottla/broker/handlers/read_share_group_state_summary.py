"""ReadShareGroupStateSummary (87), versions 0-1: returns a share group's start offsets (KIP-932).

Between brokers: partition leaders and group coordinators send it.
"""

from dataclasses import dataclass

from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import brokers_only
from ottla.broker.requests.request import RequestContext
from ottla.broker.share.messages import SUMMARY
from ottla.broker.share.persister import Persister
from ottla.wire.messages.share_group_state import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)
from ottla.wire.notation import Message


@dataclass(slots=True, eq=False, repr=False)
class ReadShareGroupStateSummary(Handler):
    """Serves ReadShareGroupStateSummary."""

    api = Api(
        ReadShareGroupStateSummaryRequest,
        ReadShareGroupStateSummaryResponse,
        Versions(0, 1),
        needs=brokers_only,
        on_error=SUMMARY.failed,
    )

    persister: Persister

    async def handle(
        self, _request: RequestContext, body: ReadShareGroupStateSummaryRequest
    ) -> Message:
        """Have the coordinator of each partition's state decide."""
        answers = await self.persister.carry_out(SUMMARY, SUMMARY.of_request(body))
        return SUMMARY.answer(answers.items())
