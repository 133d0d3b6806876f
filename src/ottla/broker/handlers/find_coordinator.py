"""FindCoordinator (10), versions 0-6: which broker coordinates a group; many at once from 4 on.

Looking for a group's coordinator creates `__consumer_offsets` where it lacks. Transactional ids
get INVALID_REQUEST until there are transactions; share groups likewise, as from a Kafka where they
are off.
"""

from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.advertised import BrokerAddress, broker_address
from ottla.broker.handler import Handler
from ottla.broker.internal_topics import CONSUMER_OFFSETS
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
    _check_key_type(body.key_type)
    await broker.topics.auto_create(CONSUMER_OFFSETS)
    keys = body.coordinator_keys if request.version >= _BATCHED_FROM else [body.key]
    found = [_find(broker, request, key) for key in keys]
    return _response(found, request.version)


def _check_key_type(key_type: int) -> None:
    if key_type == _TRANSACTION:
        raise OttlaError(
            # Not a retriable code: a client that asks is to fail at once, and not to wait for them.
            ErrorCode.INVALID_REQUEST,
            "transactions are not supported yet; leave transactional.id unset",
        )
    if key_type != _GROUP:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"key type {key_type} is not served; 0 stands for groups",
        )


def _find(broker: "Broker", request: RequestContext, key: str) -> Coordinator:
    index = broker.groups.partition_index(key)
    assert index is not None, "the topic was made above"
    partition = broker.image.partition(CONSUMER_OFFSETS, index)
    address: BrokerAddress | None = None
    if partition is not None:
        address = broker_address(broker, partition.leader, request)
    if address is None:
        return _failed(
            key,
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            f"{CONSUMER_OFFSETS}-{index} has no leader at the moment; try again",
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
