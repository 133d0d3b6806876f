"""Decides which failures of a follow, or of a repeated changelog, are retried."""

import threading
import time
from collections.abc import Callable

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.source.cluster import is_outage
from ottla.lake.tables.table import CommitConflict, WriterFenced

# Errors that a retry cannot cure.
_FINAL = frozenset(
    {
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)
# How often in a row other failures are retried; outages are retried without limit.
_TRIES = 3
_WAIT_MAX_S = 30.0
_OUTAGE_WAIT_S = 1.0


class Tries:
    """Counts failures since the last success. An outage is one failure, however long it takes."""

    def __init__(
        self,
        stop: threading.Event,
        on_error: Callable[[OttlaError], None],
        on_recovery: Callable[[float], None] = lambda _seconds: None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start without a failure.

        `on_error` is called once for each failure, `on_recovery` with the seconds of an outage.
        """
        self._stop = stop
        self._on_error = on_error
        self._on_recovery = on_recovery
        self._now_s = now_s
        self._count = 0
        self._away_since_s: float | None = None

    def reached(self) -> None:
        """Record that the brokers have answered: an outage is over."""
        if self._away_since_s is not None:
            waited_s, self._away_since_s = self._now_s() - self._away_since_s, None
            self._on_recovery(waited_s)

    def succeeded(self) -> None:
        """Record that a commit was made."""
        self.reached()
        self._count = 0

    def failed(self, error: OttlaError) -> None:
        """Wait before the next try. Raises `error` if it is not retried any more."""
        if isinstance(error, CommitConflict):
            return  # Another load has committed; read the table's positions again.
        if isinstance(error, WriterFenced) or error.code in _FINAL:
            raise error
        if is_outage(error):
            if self._away_since_s is None:
                self._away_since_s = self._now_s()
                self._on_error(error)
            self._stop.wait(_OUTAGE_WAIT_S)
            return
        self._count += 1
        if self._count > _TRIES:
            raise error
        self._on_error(error)
        self._stop.wait(min(_WAIT_MAX_S, 2.0 ** (self._count - 1)))
