"""Waits at startup for a registration under the broker's own id to end.

The start waits for as long as the store may take to end a session; a registration that remains
after that, or whose session this broker never had, is another broker's.
"""

import logging

from ottla.base.errors import ErrorCode, OttlaError
from ottla.coordination.interface.store import Node
from ottla.metadata import paths
from ottla.metadata.image import BrokerImage
from ottla.metadata.nodes import decode_broker

_log = logging.getLogger(__name__)

# How long the end of a session may go unnoticed after the store has ended it.
_MARGIN_MS = 2_000


class OldSessionWait:
    """How long startup waits for the end of this broker's last session, and its log lines."""

    def __init__(self, broker: BrokerImage, began_ms: int) -> None:
        self._broker = broker
        self._began_ms = self._counts_from_ms = began_ms
        self._is_said = False

    def begin_anew(self, now_ms: int) -> None:
        """Restart the wait: the store may only now have begun to count the session's lease."""
        self._counts_from_ms = now_ms

    def check(self, node: Node, ends_within_ms: int, now_ms: int) -> None:
        """Note that the old registration `node` still exists.

        Raises OttlaError (DUPLICATE_BROKER_REGISTRATION) where the session should have ended.
        """
        limit_ms = ends_within_ms + _MARGIN_MS
        if not self._is_said:
            self._is_said = True
            _log.info(
                "waiting for the end of this broker's last session: the store may take %.1f s",
                limit_ms / 1000,
            )
        if now_ms - self._counts_from_ms >= limit_ms:
            raise duplicate(
                self._broker, node, f"its session has not ended for {limit_ms / 1000:.1f} s; "
            )

    def end(self, now_ms: int) -> None:
        """Note that the broker is registered."""
        if self._is_said:
            waited_s = (now_ms - self._began_ms) / 1000
            _log.info("this broker's last session has ended, after %.1f s: going on", waited_s)


def duplicate(broker: BrokerImage, node: Node, why: str = "") -> OttlaError:
    """The error for `broker` if another broker's registration `node` has its id."""
    try:
        where = _addresses(decode_broker(paths.broker(broker.id), node.data))
    except OttlaError as error:
        where = f"an unknown address ({error.message})"
    return OttlaError(
        ErrorCode.DUPLICATE_BROKER_REGISTRATION,
        f"a broker with node.id {broker.id} already runs in this cluster, at {where}, and this one"
        f" is at {_addresses(broker)}: {why}stop that one, or give this one another node.id and"
        " a data folder of its own",
    )


def _addresses(broker: BrokerImage) -> str:
    return ", ".join(f"{end.host or 'localhost'}:{end.port}" for end in broker.endpoints.values())
