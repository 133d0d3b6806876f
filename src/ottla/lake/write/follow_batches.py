"""Plans the micro-batches of a table that follows a topic, in the driver's process.

A micro-batch is an end offset for each partition. `commit` loads and commits up to it, and its
tasks run where those of a load do.
"""

from collections.abc import Callable, Mapping

from ottla.lake.source.planner import StreamPlanner
from ottla.lake.source.source_options import StreamOptions
from ottla.lake.write.follow_end import Stop

Commit = Callable[[Mapping[int, int]], None]


def run_batches(
    options: StreamOptions,
    positions: Mapping[int, int],
    commit: Commit,
    stop: Stop,
    *,
    once: bool,
    poll_s: float,
) -> None:
    """Plan micro-batches from `positions` on, and `commit` each.

    Returns when `stop` is set, or, with `once`, when all records that existed at the start are
    loaded. Errors of `commit` are raised.
    """
    planner = StreamPlanner(options, positions)
    try:
        at = planner.initial()
        if once:
            planner.fix_target()
        while not stop.is_set():
            after = planner.latest(at, limited=True)
            if after != at:
                commit({key.partition: place.offset for key, place in after.places.items()})
                at = after
            elif once:
                return
            else:
                stop.wait(poll_s)
    finally:
        planner.close()
