"""Limits reports of equal events: the first of each kind, then one per interval. Pure."""

from collections.abc import Hashable

# Kinds that are remembered; the one reported longest ago is forgotten for a new one.
_KINDS_MAX = 1_000


class Seldom:
    """Counts the events that are not reported. Times are milliseconds of any clock."""

    def __init__(self, interval_ms: int) -> None:
        self._interval_ms = interval_ms
        # When an event of the kind may be reported again, and how many were left out since.
        # In the order in which they were reported.
        self._kinds: dict[Hashable, tuple[int, int]] = {}

    def admit(self, kind: Hashable, now_ms: int, weight: int = 1) -> int | None:
        """None if this event is not to be reported, else how many of its kind were left out.

        An event counts as `weight` events where it is left out.
        """
        until_ms, held_back = self._kinds.get(kind, (now_ms, 0))
        if now_ms < until_ms:
            self._kinds[kind] = until_ms, held_back + weight
            return None
        self._kinds.pop(kind, None)
        while len(self._kinds) >= _KINDS_MAX:
            del self._kinds[next(iter(self._kinds))]
        self._kinds[kind] = now_ms + self._interval_ms, 0
        return held_back
