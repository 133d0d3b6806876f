"""Decides how much of the backlog one micro-batch reads, and asks brokers for the sizes of logs.

Each partition gets the same share of a limit, and a share that one does not need goes to the
others: a long backlog in one partition does not make the others wait. If a limit is too small for
all partitions, those that waited longest come first.
"""

from collections.abc import Collection, Mapping
from typing import TypeVar

from ottla.base.errors import OttlaError
from ottla.client import sync
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

    `offset_bytes` is the approximate size in bytes of one offset in the partition's log; `waited`
    is the result of `waits` for the last micro-batch. At least one offset is read if there is one,
    so a limit below a record's size does not stop the stream.
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
    """Return for how many micro-batches each partition has waited, after one reads `counts`."""
    return {key: waited.get(key, 0) + 1 for key in backlog if backlog[key] and not counts[key]}


def _shared(
    backlog: Mapping[K, int], costs: Mapping[K, float], limit: int, waited: Mapping[K, int]
) -> dict[K, int]:
    """Return as many offsets of each partition as `limit` allows, at its cost per offset."""
    shares = dict.fromkeys(backlog, 0)
    # The smallest backlogs first, so that the rest of their share goes to all others.
    waiting = sorted((key for key in backlog if backlog[key]), key=lambda k: backlog[k] * costs[k])
    room = float(limit)
    # Take one offset of each, and of the first at any cost: otherwise it might wait forever.
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
    """Return whether the backlog is large enough, by either minimum, to start a micro-batch."""
    if records_min is None and bytes_min is None:
        return True
    records = sum(backlog.values())
    size = sum(count * offset_bytes[key] for key, count in backlog.items())
    return (records_min is not None and records >= records_min) or (
        bytes_min is not None and size >= bytes_min
    )


# Without an answer the sizes are guessed; the plan is still correct.
_PATIENCE_S = 5.0


def log_bytes(bootstrap: Bootstrap, topics: Collection[str]) -> dict[str, dict[int, int]]:
    """Return, by topic, the size of each partition's largest replica.

    Brokers that do not answer in time are left out.
    """
    sizes: dict[str, dict[int, int]] = {topic: {} for topic in topics}
    if not sizes:
        return sizes
    try:
        brokers = as_brokers(bootstrap)
        with sync.Admin(brokers.bootstrap, config=brokers.access.client_config()) as admin:
            for directory in admin.logs.directories(patience_s=_PATIENCE_S):
                for partition, size in directory.partition_bytes.items():
                    if partition.topic in sizes:
                        own = sizes[partition.topic]
                        own[partition.partition] = max(own.get(partition.partition, 0), size)
    except OttlaError:
        return {}
    return sizes
