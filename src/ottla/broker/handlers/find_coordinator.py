"""FindCoordinator (10), versions 0-6: which broker coordinates a group or a transactional id.

Many at once from 4 on. Looking for a coordinator creates `__consumer_offsets`, or
`__transaction_state`, where it lacks. Share groups get INVALID_REQUEST, as from a Kafka where they
are off.
"""

from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.advertised import BrokerAddress, broker_address
from ottla.broker.handler import Handler
from ottla.broker.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from ottla.broker.request import RequestContext
from ottla.wire.api import ApiKey
from ottla.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

_GROUP, _TRANSACTION = 0, 1

_BATCHED_FROM = 4


async def handle(
    broker: "Broker", request: RequestContext, body: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    """Find the coordinator of each key."""
    is_transaction = _check_key_type(body.key_type)
    topic = TRANSACTION_STATE if is_transaction else CONSUMER_OFFSETS
    await broker.topics.auto_create(topic)
    keys = body.coordinator_keys if request.version >= _BATCHED_FROM else [body.key]
    index_of = (broker.transactions if is_transaction else broker.groups).partition_index
    return _response(
        [_find(broker, request, key, topic, index_of(key)) for key in keys], request.version
    )


def _check_key_type(key_type: int) -> bool:
    """Whether it is a transactional id, and no group."""
    if key_type not in (_GROUP, _TRANSACTION):
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"key type {key_type} is not served; 0 stands for groups, 1 for transactional ids",
        )
    return key_type == _TRANSACTION


def _find(
    broker: "Broker", request: RequestContext, key: str, topic: str, index: int | None
) -> Coordinator:
    assert index is not None, "the topic was made above"
    partition = broker.image.partition(topic, index)
    address: BrokerAddress | None = None
    # One whose connection broke just now is most likely dead, and another known in a moment.
    if partition is not None and partition.leader in broker.peers.answering():
        address = broker_address(broker, partition.leader, request)
    if address is None:
        return _failed(
            key,
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            f"{topic}-{index} has no leader at the moment; try again",
        )
    return Coordinator(key=key, node_id=address.id, host=address.host, port=address.port)


def _failed(key: str, code: ErrorCode, message: str | None) -> Coordinator:
    return Coordinator(
        key=key, node_id=-1, host="", port=-1, error_code=code, error_message=message
    )


def _response(found: list[Coordinator], version: int) -> FindCoordinatorResponse:
    if version >= _BATCHED_FROM:
        return FindCoordinatorResponse(coordinators=found)
    (only,) = found
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


def on_error(
    body: FindCoordinatorRequest, code: ErrorCode, message: str | None, version: int
) -> FindCoordinatorResponse:
    """The error on every key."""
    keys = body.coordinator_keys if version >= _BATCHED_FROM else [body.key]
    return _response([_failed(key, code, message) for key in keys], version)


HANDLER = Handler(ApiKey.FIND_COORDINATOR, 0, 6, handle)
