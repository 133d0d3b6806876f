"""This broker's past sessions, noted in its data folder, to recognise its own old node.

After a kill -9 or a power cut a broker may be back before the store has noticed the end of its
last session. The node under its id is then its own: it is waited for, not taken for another
broker.

Where the store takes a credential, the session is ended instead. Its holder is dead for certain if
it had this very folder, for a broker locks its data folder and the kernel frees the lock with the
process. So the note names the folder's place, and is ignored in a copy of the folder.
"""

import asyncio
import logging
import os
from collections.abc import Sequence
from typing import NamedTuple

from ottla.coordination.interface.store import Session
from ottla.storage.disk.filesystem import FileSystem, write_atomically

_log = logging.getLogger(__name__)

SESSION_NOTE = "ottla-session.note"


class NotedSession(NamedTuple):
    """A session id; `credential` is empty if a later process cannot end the session."""

    id: int
    credential: str = ""


class SessionNote:
    """The sessions in a file of the data folder.

    A line each: id, credential, place.
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

        A failure is only logged, as the note merely saves waiting.
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
        """Identify the place: the machine since its boot, the mounted disk, the folder.

        Empty if unknown.
        """
        page_cache_id = self._filesystem.page_cache_id(self._folder)
        return f"{page_cache_id} {os.path.realpath(self._folder)}" if page_cache_id else ""


def noted(session: Session) -> NotedSession:
    """The line for a session."""
    return NotedSession(session.id, session.credential)
