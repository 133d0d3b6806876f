"""Where a table that follows a topic gets its micro-batches from: two sources of one kind.

A source proposes ends; `commit` loads and commits up to them. It returns when `stop` is set, or
with `once` when all is loaded that was there at the start. What `commit` raises passes.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from ottla.lake.stream.follow.ending import Stop
from ottla.lake.stream.options import SourceOptions
from ottla.lake.stream.planner import StreamPlanner

Commit = Callable[[Mapping[int, int]], None]


class MicroBatches(Protocol):
    """Proposes ends from `positions` on."""

    def run(self, positions: Mapping[int, int], commit: Commit, stop: Stop) -> None: ...


class PlainBatches:
    """In this process, without Spark: for small topics, and where no JVM is."""

    def __init__(self, options: SourceOptions, *, once: bool, poll_s: float) -> None:
        self._options = options
        self._once = once
        self._poll_s = poll_s

    def run(self, positions: Mapping[int, int], commit: Commit, stop: Stop) -> None:
        planner = StreamPlanner(self._options, positions)
        try:
            at = planner.initial()
            if self._once:
                planner.fix_target()
            while not stop.is_set():
                after = planner.latest(at, limited=True)
                if after != at:
                    commit({key.partition: place.offset for key, place in after.places.items()})
                    at = after
                elif self._once:
                    return
                else:
                    stop.wait(self._poll_s)
        finally:
            planner.close()
