"""Tracks whether the broker knows what it hosts; until then only other brokers are served."""

from collections.abc import Callable


class Readiness:
    """Begins as not ready; clients' requests wait until `begin`."""

    def __init__(self) -> None:
        self.is_serving = False
        self._waiting: list[Callable[[], None]] = []

    def when_serving(self, callback: Callable[[], None]) -> None:
        """Call `callback` when the broker begins to serve clients."""
        self._waiting.append(callback)

    def begin(self) -> None:
        """Mark the broker as ready: it knows what it hosts."""
        self.is_serving = True
        waiting, self._waiting = self._waiting, []
        for callback in waiting:
            callback()
