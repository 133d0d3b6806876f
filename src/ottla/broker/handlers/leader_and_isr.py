"""LeaderAndIsr (4), version 7: the controller gives this broker its roles.

Between brokers only. Refused as a whole: a controller that was succeeded
(STALE_CONTROLLER_EPOCH), and orders to an earlier registration of this broker
(STALE_BROKER_EPOCH, KIP-380). A state that is older than the one acted on is done already.
"""

from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode
from ottla.base.ids import BrokerId, TopicId
from ottla.broker.requests.legacy import LegacyHandler
from ottla.broker.requests.request import RequestContext
from ottla.metadata.image import PartitionImage, TopicImage
from ottla.wire.api import ApiKey
from ottla.wire.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
    LeaderAndIsrTopicState,
)

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker


async def handle(
    broker: "Broker", _request: RequestContext | None, body: LeaderAndIsrRequest
) -> LeaderAndIsrResponse:
    """Open what is not open, take the roles, and tell what could not be done."""
    broker.fence.check(body.controller_id, body.controller_epoch, body.broker_epoch)
    states: list[tuple[TopicImage, int, PartitionImage]] = []
    for topic in body.topic_states:
        image = _topic(broker, topic)
        states += [(image, s.partition_index, _state(s)) for s in topic.partition_states]
    failed = await broker.partitions.order(states)
    return LeaderAndIsrResponse(
        topics=[
            LeaderAndIsrTopicError(
                topic_id=topic.topic_id,
                partition_errors=[
                    LeaderAndIsrPartitionError(
                        partition_index=state.partition_index,
                        error_code=_code(failed.get((topic.topic_name, state.partition_index))),
                    )
                    for state in topic.partition_states
                ],
            )
            for topic in body.topic_states
        ]
    )


def on_error(
    _body: LeaderAndIsrRequest, code: ErrorCode, _message: str | None, _version: int
) -> LeaderAndIsrResponse:
    """The error of the whole request."""
    return LeaderAndIsrResponse(error_code=code)


def _topic(broker: "Broker", told: LeaderAndIsrTopicState) -> TopicImage:
    """The topic as it is known here; one that is new gets its settings with the next image."""
    known = broker.image.topic_by_id(TopicId(told.topic_id))
    return known or TopicImage(told.topic_name, TopicId(told.topic_id), ())


def _state(told: LeaderAndIsrPartitionState) -> PartitionImage:
    return PartitionImage(
        leader=BrokerId(told.leader),
        leader_epoch=told.leader_epoch,
        replicas=_brokers(told.replicas),
        isr=_brokers(told.isr),
        version=told.partition_epoch,
        elr=_brokers(told.elr),
        last_known_elr=_brokers(told.last_known_elr),
        nonce=told.nonce,
        adding=_brokers(told.adding_replicas),
        removing=_brokers(told.removing_replicas),
        leader_broker_epoch=told.leader_broker_epoch,
        unclean_epoch=told.unclean_epoch,
    )


def _brokers(ids: list[int]) -> tuple[BrokerId, ...]:
    return tuple(BrokerId(broker) for broker in ids)


def _code(error: "Exception | None") -> ErrorCode:
    return getattr(error, "code", ErrorCode.NONE)


HANDLER = LegacyHandler(ApiKey.LEADER_AND_ISR, 7, 7, handle)
