"""Writes the audit log in the background: a bounded queue, and a thread that empties it.

Lines that arrive while the disk is busy are written together. If a write fails, the broker
continues: it logs the failure and keeps the lines in memory. Lines that exceed the limit are
dropped, and their number is recorded later.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable

from ottla.base.log_lines import Seldom
from ottla.broker.audit.files import AuditFiles
from ottla.security.audit.chain import Event, Head

_log = logging.getLogger(__name__)

_QUEUED_MAX = 10_000
_TOGETHER_MAX = 1_000
# Lines are written at once, but flushed at most this often.
_SYNC_APART_MS = 100
_RETRY_S = 1.0
_FAILURES_APART_MS = 60_000
# How often the hash of the last line is written to the broker's log, if it has changed.
_ANNOUNCED_S = 600.0


class AuditWriter:
    """Writes `files`, which nothing else may use after `start`. `inline` uses no thread."""

    def __init__(
        self,
        files: AuditFiles,
        stamp: Callable[[Event], Event],
        monotonic_ms: Callable[[], int],
        *,
        inline: bool,
    ) -> None:
        self._files = files
        self._stamp = stamp
        self._monotonic_ms = monotonic_ms
        self._inline = inline
        self._queued: deque[Event] = deque()
        # The number of dropped lines, counted by the loop; and how many of them the thread
        # recorded.
        self._lost = 0
        self._lost_recorded = 0
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._failures = Seldom(_FAILURES_APART_MS)
        self._is_failing = False
        self._announced: Head | None = None

    def start(self) -> None:
        """Open the files and begin to write. Raises OttlaError. May block."""
        self._files.open()
        self._announced = self._files.head
        if not self._inline:
            self._thread = threading.Thread(target=self._work, name="ottla-audit", daemon=True)
            self._thread.start()

    def put(self, event: Event) -> None:
        """Queue a line to be written. Does not wait."""
        if len(self._queued) >= _QUEUED_MAX:
            self._lost += 1
            return
        self._queued.append(event)
        if self._inline:
            self._write()
        else:
            self._wake.set()

    @property
    def queued(self) -> int:
        """Return the number of lines waiting to be written."""
        return len(self._queued)

    @property
    def lost(self) -> int:
        """Return the number of lines dropped since the start because too many waited."""
        return self._lost

    def close(self) -> None:
        """Wait until all lines are written, or a write has failed. May block."""
        self._closing.set()
        self._wake.set()
        if self._thread is None:
            self._write()
        else:
            self._thread.join()
            self._thread = None
        self._announce()
        self._files.close()

    def _work(self) -> None:
        waits_s = _ANNOUNCED_S
        synced_ms = self._monotonic_ms()
        is_dirty = False
        while True:
            is_idle = not self._wake.wait(waits_s)
            self._wake.clear()
            # Read before the queue, so that lines queued before `close` are still written.
            is_last = self._closing.is_set()
            is_dirty |= bool(self._queued)
            waits_ms = synced_ms + _SYNC_APART_MS - self._monotonic_ms()
            if is_last or waits_ms <= 0:
                synced_ms, is_dirty = self._monotonic_ms(), False
                self._write(syncs=True)
            else:
                self._write(syncs=False)
            if is_last:
                return
            if is_idle and not is_dirty and not self._is_failing:
                self._announce()
            waits_s = max(1, waits_ms) / 1000 if is_dirty else _ANNOUNCED_S
            if self._is_failing:
                waits_s = _RETRY_S

    def _write(self, *, syncs: bool = True) -> None:
        """Write all queued lines, unless a write fails."""
        try:
            self._files.append([])
            while self._queued or self._lost > self._lost_recorded:
                self._files.append(self._next())
            if syncs:
                self._files.sync()
        except OSError as error:
            self._is_failing = True
            self._log_failure(error)
            return
        if self._is_failing and syncs:
            self._is_failing = False
            _log.info("audit log: it is written again")

    def _next(self) -> list[Event]:
        events: list[Event] = []
        while self._queued and len(events) < _TOGETHER_MAX:
            events.append(self._queued.popleft())
        lost = self._lost
        if not self._queued and lost > self._lost_recorded:
            events.append(self._stamp({"event": "lost", "lines": lost - self._lost_recorded}))
            self._lost_recorded = lost
        return events

    def _log_failure(self, error: OSError) -> None:
        if self._failures.admit("write", self._monotonic_ms()) is not None:
            _log.error(
                "the audit log cannot be written (%s); requests are served all the same, and its"
                " lines wait in memory: make room on its disk, or let the broker write there",
                error,
            )

    def _announce(self) -> None:
        head = self._files.head
        if head != self._announced:
            self._announced = head
            _log.info("audit log: line %d has the hash %s", *head)
