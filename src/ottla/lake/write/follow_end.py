"""Decides when a follow ends, and which of its failures are retried."""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model.plan import LATEST_OFFSET, Boundary
from ottla.lake.source.access import Bootstrap
from ottla.lake.source.boundaries import offsets_of
from ottla.lake.source.cluster import Cluster, TopicDescription, connect, is_outage
from ottla.lake.tables.table import FencedWriter, LoadLost

Positions = Mapping[int, int]

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


def goal_of(
    cluster: Cluster, described: TopicDescription, end: Boundary, positions: Positions
) -> dict[int, int]:
    """Return the end offset of each partition for the boundary `end`.

    Named offsets may lie in the future. A partition that is not named ends at its log's current
    end. Raises OttlaError for an unknown partition.
    """
    bounds = described.bounds
    named = end.offsets or {}
    later = {p: o for p, o in named.items() if p in bounds and o > bounds[p].end}
    if later:
        end = replace(end, offsets={**named, **dict.fromkeys(later, LATEST_OFFSET)})
    return {**offsets_of(cluster, described, end, positions, unnamed="latest"), **later}


class FollowEnd:
    """The end of a follow: `stop` is set, or the table has reached the boundary `end`.

    If `end` is a time in the future, its offsets are looked up once that time has come.
    """

    def __init__(
        self,
        stop: threading.Event,
        end: Boundary | None,
        topic: str,
        bootstrap: Bootstrap,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.stop = stop
        self._end = end
        self._topic = topic
        self._bootstrap = bootstrap
        self._now_ms = now_ms
        self._positions: Positions = {}
        self._goal: Positions | None = None

    def at(self, positions: Positions | None) -> Positions:
        """Record the table's `positions` (None for a new table), and return them."""
        self._positions = positions or {}
        return self._positions

    def is_set(self) -> bool:
        """Return whether the follow is over. Raises OttlaError if the cluster does not answer."""
        if self.stop.is_set():
            return True
        goal = self.goal()
        return goal is not None and all(self._positions.get(p, 0) >= end for p, end in goal.items())

    def goal(self) -> Positions | None:
        """Return the positions at which the follow ends.

        None if it has no end, or if the end is a time in the future.
        """
        end = self._end
        if self._goal is None and end is not None and (end.timestamp_ms or 0) <= self._now_ms():
            with closing(connect(self._bootstrap)) as cluster:
                described = cluster.describe(self._topic)
                self._goal = goal_of(cluster, described, end, self._positions)
        return self._goal


class Tries:
    """Counts failures since the last success. An outage is one failure, however long it takes."""

    def __init__(
        self,
        stop: threading.Event,
        on_trouble: Callable[[OttlaError], None],
        on_recovery: Callable[[float], None] = lambda _seconds: None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start without a failure.

        `on_trouble` is called once for each failure, `on_recovery` with the seconds of an outage.
        """
        self._stop = stop
        self._on_trouble = on_trouble
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
        if isinstance(error, LoadLost):
            return  # Another load has committed; read the table's positions again.
        if isinstance(error, FencedWriter) or error.code in _FINAL:
            raise error
        if is_outage(error):
            if self._away_since_s is None:
                self._away_since_s = self._now_s()
                self._on_trouble(error)
            self._stop.wait(_OUTAGE_WAIT_S)
            return
        self._count += 1
        if self._count > _TRIES:
            raise error
        self._on_trouble(error)
        self._stop.wait(min(_WAIT_MAX_S, 2.0 ** (self._count - 1)))
