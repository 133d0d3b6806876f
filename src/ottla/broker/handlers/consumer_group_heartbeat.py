"""ConsumerGroupHeartbeat (68), versions 0-1: serves groups that the coordinator assigns (KIP-848).

Joining, reporting and leaving are one request; the settings of the group (KIP-848's `consumer.*`)
take precedence over the broker's.
"""

from dataclasses import dataclass

from ottla.base.settings import BrokerSettings
from ottla.broker.configs.features import require_feature
from ottla.broker.groups import Groups
from ottla.broker.groups.answer import WholeAnswer
from ottla.broker.groups.sight import sight_of
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import subscription
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.view import ClusterView
from ottla.group.values.settings import Pace
from ottla.metadata.features import GROUP
from ottla.wire.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupHeartbeat(Handler):
    """Serves ConsumerGroupHeartbeat."""

    api = Api(
        ConsumerGroupHeartbeatRequest,
        ConsumerGroupHeartbeatResponse,
        Versions(0, 1),
        needs=subscription(lambda body: body.group_id, lambda body: body.subscribed_topic_names),
    )

    view: ClusterView
    groups: Groups
    settings: BrokerSettings

    def handle(self, request: RequestContext, body: ConsumerGroupHeartbeatRequest) -> None:
        """Have the group's coordinator decide."""
        require_feature(self.view.image, GROUP)
        pace = self._pace(body.group_id)
        sight = sight_of(request)
        if body.member_epoch == 0:
            self.groups.admit(request, body.group_id)
        self.groups.run(
            body.group_id,
            WholeAnswer(request, body, self.on_error),
            lambda coordinator, call, at: coordinator.members.consumer_heartbeat(
                call, body, pace, at, sight
            ),
        )

    def _pace(self, group_id: str) -> Pace:
        own = self.view.image.group_configs.get(group_id, {})

        def value(name: str) -> tuple[int, str]:
            text = own.get(f"consumer.{name}")
            if text is None:
                return self.settings.integer(f"group.consumer.{name}"), f"group.consumer.{name}"
            return int(text), f"consumer.{name}"

        session_timeout_ms, setting = value("session.timeout.ms")
        return Pace(session_timeout_ms, value("heartbeat.interval.ms")[0], setting)
