"""The stopping broker's side of a controlled shutdown."""

import asyncio
import logging

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId
from ottla.broker.cluster.controller_fence import ControllerFence
from ottla.broker.cluster.peers import Peers
from ottla.broker.controller import Controller
from ottla.broker.runtime.view import ClusterView
from ottla.wire.messages.between_brokers import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)

_log = logging.getLogger(__name__)

_ATTEMPTS = 3
_PAUSE_S = 0.2
_REQUEST_TIMEOUT_MS = 5_000


async def hand_over(
    view: ClusterView, fence: ControllerFence, controller: Controller, peers: Peers
) -> None:
    """Ask the controller to move all leaders away; after some attempts stop anyway."""
    for _ in range(_ATTEMPTS):
        try:
            remaining = await asyncio.wait_for(
                _ask(view.broker_id, fence.broker_epoch, controller, peers),
                _REQUEST_TIMEOUT_MS / 1000,
            )
        except (OttlaError, TimeoutError) as error:
            _log.warning("controlled shutdown: %s", getattr(error, "message", "no answer"))
        else:
            if not remaining:
                return
            _log.info(
                "controlled shutdown: %d partition(s) have no other in-sync replica to lead yet",
                remaining,
            )
        await asyncio.sleep(_PAUSE_S)


async def _ask(broker_id: BrokerId, broker_epoch: int, controller: Controller, peers: Peers) -> int:
    """Ask once; return how many partitions could not be moved. Raises OttlaError."""
    controller_id = controller.controller_id
    if controller_id == broker_id:
        return len(await controller.shut_down(broker_id, broker_epoch))
    if controller_id is None:
        raise OttlaError(ErrorCode.NOT_CONTROLLER, "there is no controller at the moment")
    request = ControlledShutdownRequest(broker_id=broker_id, broker_epoch=broker_epoch)
    response: ControlledShutdownResponse = await peers.request(
        controller_id, request, timeout_ms=_REQUEST_TIMEOUT_MS
    )
    if response.error_code != ErrorCode.NONE:
        code = ErrorCode(response.error_code)
        raise OttlaError(code, f"the controller, broker {controller_id}, refused: {code.name}")
    return len(response.remaining_partitions)
