"""Decides how much of the backlog one micro-batch reads, and gets the sizes of logs from brokers.

Each partition gets the same share of a limit, and a share that a partition does not need goes to
the other partitions. So a long backlog in one partition does not delay the others. If a limit is
too small for all partitions, those that have waited longest come first.
"""

from collections.abc import Collection, Mapping
from typing import TypeVar

from ottla.base.errors import OttlaError
from ottla.lake.source.access import Bootstrap, as_brokers

K = TypeVar("K")


def admitted(
    backlog: Mapping[K, int],
    offset_bytes: Mapping[K, float],
    records_max: int | None,
    bytes_max: int | None,
    waited: Mapping[K, int],
) -> dict[K, int]:
    """Return how many offsets of each partition's `backlog` to read, within both limits.

    `offset_bytes` is the average size of one offset in the partition's log. `waited` is the result
    of `waits` for the last micro-batch. At least one offset is read if there is a backlog, so a
    limit below a record's size does not stop the stream.
    """
    found = dict(backlog)
    if records_max is not None:
        found = _shared(found, dict.fromkeys(found, 1.0), records_max, waited)
    if bytes_max is not None:
        found = _shared(found, offset_bytes, bytes_max, waited)
    return found


def waits(
    waited: Mapping[K, int], backlog: Mapping[K, int], counts: Mapping[K, int]
) -> dict[K, int]:
    """Return for how many micro-batches each partition has waited, including one of `counts`."""
    return {key: waited.get(key, 0) + 1 for key in backlog if backlog[key] and not counts[key]}


def _shared(
    backlog: Mapping[K, int], costs: Mapping[K, float], limit: int, waited: Mapping[K, int]
) -> dict[K, int]:
    """Return how many offsets of each partition fit into `limit`, with `costs` per offset."""
    shares = dict.fromkeys(backlog, 0)
    # Sort the smallest backlogs first, so that the rest of their share goes to the others.
    waiting = sorted((key for key in backlog if backlog[key]), key=lambda k: backlog[k] * costs[k])
    room = float(limit)
    # Take one offset of each partition, if it fits. The partition that has waited longest gets one
    # in any case, otherwise it might wait forever.
    for place, key in enumerate(sorted(waiting, key=lambda k: -waited.get(k, 0))):
        if place == 0 or costs[key] <= room:
            shares[key] = 1
            room -= costs[key]
    room = max(0.0, room)
    for place, key in enumerate(waiting):
        share = room / (len(waiting) - place)
        more = min(backlog[key] - shares[key], int(share / costs[key]))
        shares[key] += more
        room -= more * costs[key]
    return shares


def is_enough(
    backlog: Mapping[K, int],
    offset_bytes: Mapping[K, float],
    records_min: int | None,
    bytes_min: int | None,
) -> bool:
    """Return whether the backlog reaches either minimum, so that a micro-batch may start."""
    if records_min is None and bytes_min is None:
        return True
    records = sum(backlog.values())
    size = sum(count * offset_bytes[key] for key, count in backlog.items())
    return (records_min is not None and records >= records_min) or (
        bytes_min is not None and size >= bytes_min
    )


# After this time, sizes are guessed. The plan is still correct.
_PATIENCE_S = 5.0


def log_bytes(bootstrap: Bootstrap, topics: Collection[str]) -> dict[str, dict[int, int]]:
    """Return the size of each partition's largest replica, by topic and partition.

    Brokers that do not answer in time are left out.
    """
    sizes: dict[str, dict[int, int]] = {topic: {} for topic in topics}
    if not sizes:
        return sizes
    try:
        with as_brokers(bootstrap).admin() as admin:
            for directory in admin.logs.directories(patience_s=_PATIENCE_S):
                for partition, size in directory.partition_bytes.items():
                    if partition.topic in sizes:
                        own = sizes[partition.topic]
                        own[partition.partition] = max(own.get(partition.partition, 0), size)
    except OttlaError:
        return {}
    return sizes
