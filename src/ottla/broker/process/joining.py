"""What begins with a registration: roles of this broker epoch, and candidacy for the controller."""

from ottla.broker.cluster.controller_fence import ControllerFence
from ottla.broker.controller import Controller
from ottla.broker.replication.replication import Replication
from ottla.broker.runtime.view import ClusterView
from ottla.coordination.store import Session
from ottla.replica.standing import Standing


class Joining:
    """Called by `cluster.membership` after each registration."""

    def __init__(
        self,
        view: ClusterView,
        fence: ControllerFence,
        session_ms: int,
        replication: Replication,
        controller: Controller,
    ) -> None:
        self._view = view
        self._fence = fence
        self._session_ms = session_ms
        self._replication = replication
        self._controller = controller

    async def joined(self, session: Session) -> None:
        """Roles come with this registration, from a controller that may be this very broker."""
        standing = Standing(self._view.broker_id, self._fence.broker_epoch, self._session_ms)
        self._replication.on_registered(standing, session)
        await self._controller.start(session)
