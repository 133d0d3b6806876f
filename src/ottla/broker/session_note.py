"""Which sessions this broker had, kept beside its data: by it a broker knows its own old node.

After a power cut a machine may be back before the store has noticed its end. The node under its
id is then its own, of a session nobody holds any more: it is waited for, not taken for another
broker.
"""

import asyncio
import logging

from ottla.storage.checkpoint import write_atomically
from ottla.storage.filesystem import FileSystem

_log = logging.getLogger(__name__)

SESSION_NOTE = "ottla-session.note"


class SessionNote:
    """Session ids in a file of one line each, in the folder of a broker's data."""

    def __init__(self, filesystem: FileSystem, folder: str) -> None:
        self._filesystem = filesystem
        self._path = f"{folder}/{SESSION_NOTE}"

    def read(self) -> tuple[int, ...]:
        """The sessions that may still stand; none where nothing is noted or it is unreadable."""
        try:
            if not self._filesystem.exists(self._path):
                return ()
            return tuple(int(line) for line in self._filesystem.read_bytes(self._path).split())
        except (OSError, ValueError) as error:
            _log.warning("%s cannot be read and is made anew: %s", self._path, error)
            return ()

    async def write(self, sessions: tuple[int, ...]) -> None:
        """Note them on the disk. What cannot be written is logged: it only saves waiting."""
        text = "".join(f"{session}\n" for session in sessions).encode("ascii")
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(None, write_atomically, self._filesystem, self._path, text)
        except OSError as error:
            _log.warning("%s cannot be written: %s", self._path, error)
