"""Removes the files of deleted logs and segments after a delay, in a thread."""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor

from ottla.storage.segment.segments import Deletion

_log = logging.getLogger(__name__)


class Removals:
    """Deletions not yet due; with `inline` (memory) files are removed on the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, inline: bool = False) -> None:
        self._loop = loop
        self._inline = inline
        # A thread of its own, so that a thousand removals delay no other job.
        self._thread = ThreadPoolExecutor(1, "ottla-remove")
        self._waiting: dict[Deletion, asyncio.TimerHandle] = {}

    def __len__(self) -> int:
        """Deletions that are not yet due."""
        return len(self._waiting)

    def remove_later(self, deletion: Deletion) -> None:
        """Remove files after file.delete.delay.ms, when no fetch reads them any more."""
        self._waiting[deletion] = self._loop.call_later(
            deletion.delay_ms / 1000, self._remove, deletion
        )

    def remove_now(self) -> None:
        """Remove all waiting files now, because the disk is full."""
        for deletion, timer in list(self._waiting.items()):
            timer.cancel()
            self._remove(deletion)

    def close(self) -> None:
        """Remove all waiting files, and return when that is done."""
        for deletion, timer in list(self._waiting.items()):
            timer.cancel()
            self._waiting.pop(deletion, None)
            _run(deletion)
        self._thread.shutdown(wait=True)

    def _remove(self, deletion: Deletion) -> None:
        self._waiting.pop(deletion, None)
        if self._inline:
            _run(deletion)
        else:
            # Removing a file of a gigabyte takes the system a while.
            self._loop.run_in_executor(self._thread, _run, deletion)


def _run(deletion: Deletion) -> None:
    try:
        deletion.run()
    except OSError as error:
        _log.error("cannot remove deleted files, trying again at the next start: %s", error)
