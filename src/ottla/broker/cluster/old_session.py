"""Waits at startup until an old registration under this broker's id ends.

The broker waits for as long as the store may take to end a session. A registration that remains
after that, or whose session this broker never had, belongs to another broker.
"""

import asyncio
import logging
from collections.abc import Sequence

from ottla.base.errors import ErrorCode, OttlaError
from ottla.coordination.interface.store import Node
from ottla.metadata import paths
from ottla.metadata.image import BrokerImage
from ottla.metadata.nodes import decode_broker
from ottla.storage.disk.filesystem import FileSystem, write_atomically

_log = logging.getLogger(__name__)

SESSION_NOTE = "ottla-session.note"


class SessionNote:
    """A file in the data folder with the ids of this broker's sessions, one per line."""

    def __init__(self, filesystem: FileSystem, folder: str) -> None:
        """The caller holds the folder's lock."""
        self._filesystem = filesystem
        self._path = f"{folder}/{SESSION_NOTE}"

    def read(self) -> tuple[int, ...]:
        """Read the sessions that may still exist; none if the file is missing or unreadable."""
        try:
            if not self._filesystem.exists(self._path):
                return ()
            return tuple(map(int, self._filesystem.read_bytes(self._path).split()))
        except (OSError, ValueError) as error:
            _log.warning("%s cannot be read and is written again: %s", self._path, error)
            return ()

    async def write(self, sessions: Sequence[int]) -> None:
        """Write the sessions to the disk.

        A failure is only logged: without the file, a start after a crash takes this broker's own
        registration for that of another one.
        """
        text = "".join(f"{session}\n" for session in sessions).encode("ascii")
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(None, write_atomically, self._filesystem, self._path, text)
        except OSError as error:
            _log.warning("%s cannot be written: %s", self._path, error)


# How long this broker may take to notice that the store has ended a session.
_MARGIN_MS = 2_000


class OldSessionWait:
    """Limits and logs the wait at startup for the end of this broker's last session."""

    def __init__(self, broker: BrokerImage, began_ms: int) -> None:
        self._broker = broker
        self._began_ms = self._counts_from_ms = began_ms
        self._is_said = False

    def begin_anew(self, now_ms: int) -> None:
        """Restart the wait, because the store may have restarted the session's lease."""
        self._counts_from_ms = now_ms

    def check(self, node: Node, ends_within_ms: int, now_ms: int) -> None:
        """Note that the old registration `node` still exists.

        Raises OttlaError (DUPLICATE_BROKER_REGISTRATION) if its session should have ended by now.
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
    """Return the error for `broker` if the registration `node` of another broker has its id."""
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
