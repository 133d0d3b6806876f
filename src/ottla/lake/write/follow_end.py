"""Decides when a follow ends: when it is stopped, or when its table reaches a boundary."""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Protocol

from ottla.lake.model.plan import LATEST_OFFSET, Boundary
from ottla.lake.source.access import Bootstrap
from ottla.lake.source.boundaries import offsets_of
from ottla.lake.source.cluster import Cluster, TopicDescription, connect

Positions = Mapping[int, int]


class Stop(Protocol):
    """The part of `threading.Event` that waiting code needs."""

    def is_set(self) -> bool: ...

    def wait(self, timeout: float) -> bool: ...


def goal_of(
    cluster: Cluster, described: TopicDescription, end: Boundary, positions: Positions
) -> dict[int, int]:
    """Return the offsets that `end` means now. Raises OttlaError for an unknown partition.

    Named offsets may lie in the future. A partition that is not named ends at its log's current
    end.
    """
    bounds = described.bounds
    named = end.offsets or {}
    later = {p: o for p, o in named.items() if p in bounds and o > bounds[p].end}
    if later:
        end = replace(end, offsets={**named, **dict.fromkeys(later, LATEST_OFFSET)})
    return {**offsets_of(cluster, described, end, positions, unnamed="latest"), **later}


class FollowEnd:
    """Is set once `stop` is set or the table is at `end`; for a future time, at that time."""

    def __init__(
        self,
        stop: threading.Event,
        end: Boundary | None,
        topic: str,
        bootstrap: Bootstrap,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._stop = stop
        self._end = end
        self._topic = topic
        self._bootstrap = bootstrap
        self._now_ms = now_ms
        self._positions: Positions = {}
        self._goal: Positions | None = None

    def at(self, positions: Positions) -> None:
        """Record that the table is at `positions`."""
        self._positions = positions

    def is_set(self) -> bool:
        """Return whether the follow is over. Raises OttlaError if the cluster does not answer."""
        if self._stop.is_set():
            return True
        goal = self.goal()
        return goal is not None and all(self._positions.get(p, 0) >= end for p, end in goal.items())

    def wait(self, timeout: float) -> bool:
        """Wait for a stop; return whether there was one."""
        return self._stop.wait(timeout)

    def goal(self) -> Positions | None:
        """Return the positions at which the table ends. None: no end, or a time in the future."""
        end = self._end
        if self._goal is None and end is not None and (end.timestamp_ms or 0) <= self._now_ms():
            with closing(connect(self._bootstrap)) as cluster:
                described = cluster.describe(self._topic)
                self._goal = goal_of(cluster, described, end, self._positions)
        return self._goal
