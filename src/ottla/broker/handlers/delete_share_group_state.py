"""DeleteShareGroupState (86), version 0: forgets a share group's state of partitions (KIP-932).

Between brokers: the leaders of partitions and the groups' coordinators ask.
"""

from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode
from ottla.broker.requests.legacy import LegacyHandler
from ottla.broker.requests.request import RequestContext
from ottla.broker.share.messages import DELETE
from ottla.share.coordinator import Answered
from ottla.wire.api import ApiKey
from ottla.wire.messages.delete_share_group_state import DeleteShareGroupStateRequest
from ottla.wire.notation import Message

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker


async def handle(
    broker: "Broker", _request: RequestContext, body: DeleteShareGroupStateRequest
) -> Message:
    """Have the coordinator of each partition's state decide."""
    answers = await broker.sharing.persister.carry_out(DELETE, DELETE.of_request(body))
    return DELETE.answer(answers.items())


def on_error(
    body: DeleteShareGroupStateRequest, code: ErrorCode, message: str | None, _version: int
) -> Message:
    """The same error for every partition."""
    failed = Answered(code, message=message)
    return DELETE.answer((key, failed) for key in DELETE.of_request(body))


HANDLER = LegacyHandler(ApiKey.DELETE_SHARE_GROUP_STATE, 0, 0, handle)
