"""The registration of this broker: the start and the end of its time as leader and follower."""

import asyncio
import logging
from dataclasses import dataclass, replace

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId
from ottla.base.settings import BrokerSettings
from ottla.broker.cluster.addresses import own_image
from ottla.broker.cluster.controller_fence import ControllerFence
from ottla.broker.cluster.peers import Peers
from ottla.broker.controller import Controller
from ottla.broker.process.parts import Parts
from ottla.broker.runtime.part import BrokerPart, StopMode
from ottla.broker.runtime.view import ClusterView
from ottla.broker.serving.listeners import Listeners
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
    """Ask the controller to move all leaders away; after some attempts, stop without that."""
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
    """Send one ControlledShutdown; return how many leaders remain. Raises OttlaError."""
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


_PATIENCE_S = 2.0
# How long a broker without leaders still answers requests before it closes connections.
_LAST_ANSWERS_S = 0.05


@dataclass(frozen=True, slots=True)
class RegistrationStatus:
    """Reports whether the controller has assigned partitions since the registration."""

    has_image: bool


class RegistrationPart(BrokerPart):
    """The last part: it starts when clients can connect, and stops while they still can."""

    def __init__(
        self,
        settings: BrokerSettings,
        parts: Parts,
        listeners: Listeners,
        stop_mode: StopMode,
    ) -> None:
        self._settings = settings
        self._parts = parts
        self._listeners = listeners
        self._mode = stop_mode

    async def start(self) -> None:
        """Register the broker with its current ports, and wait for the first LeaderAndIsr."""
        cluster, updates = self._parts.cluster, self._parts.metadata.updates
        directories, view = self._parts.replication.directories, cluster.view
        image = own_image(view.broker_id, self._settings, self._listeners.ports)
        clean = directories.kept_all
        epoch = await cluster.membership.join(image, clean=clean)
        if not clean:
            await self._parts.runtime.in_thread(directories.confirm_run)
        updates.show(view.image.with_broker(replace(image, epoch=epoch)))
        if not await updates.wait_for(lambda _image: updates.received_image, _PATIENCE_S):
            _log.warning(
                "no controller has sent this broker its partitions yet; it accepts clients anyway"
            )

    async def stop(self) -> None:
        """Hand over leadership and answer waiting requests, while connections are still open."""
        self._parts.cluster.membership.retire()
        if not self._mode.clean:
            return
        if self._mode.hands_over:
            await self._hand_over()
        else:
            # All brokers stop, so the controller has no more decisions to make.
            await self._parts.controller.stop()
        # Stop reading first: a record that arrives during the flush would stay unanswered.
        self._listeners.stop_reading()
        # Flush all appended records, so that producers get their answers before the close.
        try:
            await asyncio.wait_for(self._parts.replication.flusher.settle(), _PATIENCE_S)
        except TimeoutError:
            _log.warning("the disk does not answer: stopping without waiting for it")
        # The answers are sent in the next turn of the loop.
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    def status(self) -> RegistrationStatus:
        return RegistrationStatus(self._parts.metadata.updates.received_image)

    async def _hand_over(self) -> None:
        """Ask the controller to move this broker's leaders to others before it stops (P30)."""
        cluster = self._parts.cluster
        if len(cluster.view.image.brokers) < 2:
            return
        if self._settings.flag("controlled.shutdown.enable"):
            await hand_over(cluster.view, cluster.fence, self._parts.controller, cluster.peers)
            # A client that asks meanwhile is redirected to the new leader. If the connection closed
            # without an answer, it would first retry at this broker.
            await asyncio.sleep(_LAST_ANSWERS_S)
