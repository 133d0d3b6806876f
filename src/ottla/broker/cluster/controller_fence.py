"""Rejects requests of earlier controllers, and requests for earlier epochs of this broker."""

import logging

from ottla.base.errors import ErrorCode, OttlaError

_log = logging.getLogger(__name__)


class ControllerFence:
    """The highest controller epoch seen, and this broker's own broker epoch.

    Every request of a controller is checked here before it is carried out (S13, S14).
    """

    def __init__(self) -> None:
        self.controller_epoch = 0
        # Requests for a lower epoch are rejected. 0 before the first registration.
        self.broker_epoch = 0
        self._registered_epoch = 0
        self.is_registered = False

    def check(self, controller_id: int, controller_epoch: int, broker_epoch: int) -> None:
        """Raise OttlaError(STALE_CONTROLLER_EPOCH, STALE_BROKER_EPOCH) for an outdated request.

        A request for a higher broker epoch arrives if the store has not answered this broker's
        registration yet. It is rejected so that the controller sends it again, because the answer
        makes this broker drop all roles.
        """
        if controller_epoch < self.controller_epoch:
            _log.warning(
                "refused broker %d, which was the controller in epoch %d; it is epoch %d now",
                controller_id,
                controller_epoch,
                self.controller_epoch,
            )
            raise OttlaError(
                ErrorCode.STALE_CONTROLLER_EPOCH,
                f"controller epoch {controller_epoch} is over: it is {self.controller_epoch} now",
            )
        self.controller_epoch = controller_epoch
        if 0 <= broker_epoch < self.broker_epoch:
            raise OttlaError(
                ErrorCode.STALE_BROKER_EPOCH,
                f"this is for broker epoch {broker_epoch}, and this broker has registered again "
                f"as {self.broker_epoch}",
            )
        if broker_epoch > self.broker_epoch or not (self.is_registered or broker_epoch < 0):
            raise OttlaError(
                ErrorCode.STALE_BROKER_EPOCH,
                f"this is for broker epoch {broker_epoch}, and this broker does not know yet "
                "that it has registered as that; send it again",
            )

    def registered(self, broker_epoch: int) -> None:
        """Note this broker's new registration."""
        assert broker_epoch > self._registered_epoch or broker_epoch == self.broker_epoch
        self.broker_epoch = self._registered_epoch = broker_epoch
        self.is_registered = True

    def unregistered(self) -> None:
        """Note that the registration has ended; requests for it are rejected from now on.

        Idempotent. The next registration has a higher broker epoch.
        """
        self.broker_epoch = self._registered_epoch + 1
        self.is_registered = False
