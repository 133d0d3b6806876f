"""ReadShareGroupStateSummary (87), versions 0-1: how far a share group is in partitions (KIP-932).

Between brokers: the leaders of partitions and the groups' coordinators ask.
"""

from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode
from ottla.broker.requests.legacy import LegacyHandler
from ottla.broker.requests.request import RequestContext
from ottla.broker.share.messages import SUMMARY
from ottla.share.coordinator import Answered
from ottla.wire.api import ApiKey
from ottla.wire.messages.read_share_group_state_summary import ReadShareGroupStateSummaryRequest
from ottla.wire.notation import Message

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker


async def handle(
    broker: "Broker", _request: RequestContext, body: ReadShareGroupStateSummaryRequest
) -> Message:
    """Have the coordinator of each partition's state decide."""
    answers = await broker.sharing.persister.carry_out(SUMMARY, SUMMARY.of_request(body))
    return SUMMARY.answer(answers.items())


def on_error(
    body: ReadShareGroupStateSummaryRequest, code: ErrorCode, message: str | None, _version: int
) -> Message:
    """The same error for every partition."""
    failed = Answered(code, message=message)
    return SUMMARY.answer((key, failed) for key in SUMMARY.of_request(body))


HANDLER = LegacyHandler(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 0, 1, handle)
