"""ConsumerGroupHeartbeat (68), versions 0-1: groups whose shares the coordinator makes (KIP-848).

Joining, reporting and leaving are one request; the settings of the group (KIP-848's
`consumer.*`) go before the broker's.
"""

from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode
from ottla.broker.groups.answer import WholeAnswer
from ottla.broker.requests.features import require_feature
from ottla.broker.requests.legacy import LegacyHandler
from ottla.broker.requests.request import RequestContext
from ottla.group.consumer.pace import Pace
from ottla.metadata.features import GROUP
from ottla.wire.api import ApiKey
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker


def handle(broker: "Broker", request: RequestContext, body: ConsumerGroupHeartbeatRequest) -> None:
    """Have the group's coordinator decide."""
    require_feature(broker.image, GROUP)
    pace = _pace(broker, body.group_id)
    broker.groups.run(
        body.group_id,
        WholeAnswer(request, body, on_error),
        lambda coordinator, call, at: coordinator.consumer_heartbeat(call, body, pace, at),
    )


def on_error(
    _body: ConsumerGroupHeartbeatRequest, code: ErrorCode, message: str | None, _version: int
) -> ConsumerGroupHeartbeatResponse:
    """The error, and nothing else."""
    return ConsumerGroupHeartbeatResponse(error_code=code, error_message=message)


def _pace(broker: "Broker", group_id: str) -> Pace:
    own = broker.image.group_configs.get(group_id, {})

    def value(name: str) -> tuple[int, str]:
        text = own.get(f"consumer.{name}")
        if text is None:
            return broker.settings.integer(f"group.consumer.{name}"), f"group.consumer.{name}"
        return int(text), f"consumer.{name}"

    session_timeout_ms, setting = value("session.timeout.ms")
    return Pace(session_timeout_ms, value("heartbeat.interval.ms")[0], setting)


HANDLER = LegacyHandler(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, 1, handle)
