"""StopReplica (5), versions 3-4: the controller takes partitions from this broker.

Between brokers only. With `delete_partition` the log goes, too. Fenced like LeaderAndIsr, and by
leader epoch per partition (KIP-570). What is not here is stopped already.
"""

from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.partitions.partitions import StopOrder
from ottla.broker.requests.legacy import LegacyHandler
from ottla.broker.requests.request import RequestContext
from ottla.wire.api import ApiKey
from ottla.wire.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
)

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker


async def handle(
    broker: "Broker", _request: RequestContext | None, body: StopReplicaRequest
) -> StopReplicaResponse:
    """Stop them; each may fail by itself."""
    broker.fence.check(body.controller_id, body.controller_epoch, body.broker_epoch)
    failed = await broker.partitions.stop(
        [
            StopOrder(
                topic.topic_name, state.partition_index, state.leader_epoch, state.delete_partition
            )
            for topic in body.topic_states
            for state in topic.partition_states
        ]
    )
    return StopReplicaResponse(
        partition_errors=[
            StopReplicaPartitionError(
                topic_name=topic.topic_name,
                partition_index=state.partition_index,
                error_code=_code(failed.get((topic.topic_name, state.partition_index))),
            )
            for topic in body.topic_states
            for state in topic.partition_states
        ]
    )


def _code(error: OttlaError | None) -> ErrorCode:
    return ErrorCode.NONE if error is None else error.code


def on_error(
    _body: StopReplicaRequest, code: ErrorCode, _message: str | None, _version: int
) -> StopReplicaResponse:
    """The error of the whole request."""
    return StopReplicaResponse(error_code=code)


HANDLER = LegacyHandler(ApiKey.STOP_REPLICA, 3, 4, handle)
