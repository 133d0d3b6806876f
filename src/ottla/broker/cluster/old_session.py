"""Waits at startup until an old registration under this broker's id ends.

The broker waits for as long as the store may take to end a session. A registration that remains
after that, or whose session this broker never had, belongs to another broker.
"""

import asyncio
import logging
import os
from collections.abc import Sequence
from typing import NamedTuple

from ottla.base.errors import ErrorCode, OttlaError
from ottla.coordination.interface.store import Node, Session
from ottla.metadata import paths
from ottla.metadata.image import BrokerImage
from ottla.metadata.nodes import decode_broker
from ottla.storage.disk.filesystem import FileSystem, write_atomically

_log = logging.getLogger(__name__)

SESSION_NOTE = "ottla-session.note"


class NotedSession(NamedTuple):
    """A session id; `credential` is empty if a later process cannot end the session."""

    id: int
    credential: str = ""


class SessionNote:
    """A file in the data folder with this broker's sessions, one per line.

    A line has the session's id, its credential, and the place of the file (see `_place`).
    """

    def __init__(self, filesystem: FileSystem, folder: str) -> None:
        """The caller holds the folder's lock."""
        self._filesystem = filesystem
        self._folder = folder
        self._path = f"{folder}/{SESSION_NOTE}"

    def read(self) -> tuple[NotedSession, ...]:
        """Read the sessions that may still exist; none if the file is missing or unreadable."""
        try:
            if not self._filesystem.exists(self._path):
                return ()
            text = self._filesystem.read_bytes(self._path).decode("utf-8")
            return tuple(self._noted(line) for line in text.splitlines())
        except (OSError, ValueError) as error:
            _log.warning("%s cannot be read and is written again: %s", self._path, error)
            return ()

    async def write(self, sessions: Sequence[NotedSession]) -> None:
        """Write the sessions to the disk.

        A failure is only logged, because without the file a start merely waits longer.
        """
        text = "".join(f"{self._line(session)}\n" for session in sessions).encode("utf-8")
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(None, write_atomically, self._filesystem, self._path, text)
        except OSError as error:
            _log.warning("%s cannot be written: %s", self._path, error)

    def _line(self, session: NotedSession) -> str:
        if not session.credential:
            return str(session.id)
        return f"{session.id} {session.credential} {self._place()}"

    def _noted(self, line: str) -> NotedSession:
        number, _, rest = line.partition(" ")
        credential, _, place = rest.partition(" ")
        is_ours = bool(place) and place == self._place()
        return NotedSession(int(number), credential if is_ours else "")

    def _place(self) -> str:
        """Return a text that identifies this boot of the machine, the mounted disk and the folder.

        Empty if unknown. A copied file thus does not end another broker's session.
        """
        page_cache_id = self._filesystem.page_cache_id(self._folder)
        return f"{page_cache_id} {os.path.realpath(self._folder)}" if page_cache_id else ""


def noted(session: Session) -> NotedSession:
    """Return the entry of the note for a session."""
    return NotedSession(session.id, session.credential)


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
