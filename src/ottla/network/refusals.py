"""Log lines about refused clients: one per cause and interval, however often a client retries."""

import logging
from collections.abc import Callable, Hashable

from ottla.base.seldom import Seldom

_log = logging.getLogger(__name__)

_INTERVAL_MS = 600_000
_INTERVAL = "10 minutes"


class Refusals:
    """The refusals of one listener. `now_s` is a clock that never goes back."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._seldom = Seldom(_INTERVAL_MS)

    def log(self, cause: Hashable, text: Callable[[], str]) -> None:
        """Log `text()`, unless a line of the same cause was logged a short time ago.

        `cause` names the client's address or id, and what is wrong, without numbers that differ
        from try to try.
        """
        held_back = self._seldom.admit(cause, int(self._now_s() * 1000))
        if held_back is None:
            return
        repeated = f" ({held_back} more like it since the last such line)" if held_back else ""
        _log.warning("%s%s; repetitions are not logged for %s", text(), repeated, _INTERVAL)
