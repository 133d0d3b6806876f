"""Logs refused clients: one line per cause and interval, however often a client retries."""

import logging
from collections.abc import Callable, Hashable

from ottla.base.log_lines import Seldom

_log = logging.getLogger(__name__)

_INTERVAL_MS = 600_000
_INTERVAL = "10 minutes"
# The most lines per minute for all causes together, since clients may use many addresses.
_LINES_MAX = 100
_LINES_INTERVAL_MS = 60_000
# The most characters of each text in a cause. Causes are remembered, and may contain names that
# clients send.
_CAUSE_CHARACTERS_MAX = 300


class Refusals:
    """The refusals of one listener. `now_s` is a clock that never goes back."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._seldom = Seldom(_INTERVAL_MS)
        # The lines logged in this minute, its start, and the number of lines left out in it.
        self._lines = 0
        self._began_ms = 0
        self._left_out = 0

    def log(self, cause: Hashable, text: Callable[[], str]) -> None:
        """Log `text()`, unless a line with the same cause was logged a short time ago.

        `cause` consists of the client's address or id and the kind of problem. It must not contain
        numbers that change with each attempt.
        """
        now_ms = int(self._now_s() * 1000)
        held_back = self._seldom.admit(_bounded(cause), now_ms)
        if held_back is None or not self._has_room(now_ms):
            return
        repeated = f" ({held_back} more like it since the last such line)" if held_back else ""
        _log.warning("%s%s; repetitions are not logged for %s", text(), repeated, _INTERVAL)

    def sum_up(self) -> None:
        """Log how often each cause was repeated in its interval, for those that have ended."""
        now_ms = int(self._now_s() * 1000)
        for cause, count in self._seldom.ended(now_ms):
            if self._has_room(now_ms):
                words = ", ".join(map(str, cause)) if isinstance(cause, tuple) else cause
                _log.warning("%d more refusals like the last one of (%s)", count, words)

    def _has_room(self, now_ms: int) -> bool:
        if now_ms - self._began_ms >= _LINES_INTERVAL_MS:
            if self._left_out:
                _log.warning(
                    "%d refusals of clients, each of another address or cause, were not logged:"
                    " %d are, in a minute",
                    self._left_out,
                    _LINES_MAX,
                )
            self._lines, self._began_ms, self._left_out = 0, now_ms, 0
        self._lines += 1
        if self._lines <= _LINES_MAX:
            return True
        self._left_out += 1
        return False


def _bounded(cause: Hashable) -> Hashable:
    if isinstance(cause, tuple):
        return tuple(map(_bounded, cause))
    if isinstance(cause, str) and len(cause) > _CAUSE_CHARACTERS_MAX:
        return cause[:_CAUSE_CHARACTERS_MAX]
    return cause
