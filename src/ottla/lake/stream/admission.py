"""How much of what is there one micro-batch reads. Pure.

Each partition gets the same share of a limit, and what one does not need goes to the others: a
long backlog in one partition does not make the others wait. Where a limit is too small for all,
those that waited longest come first.
"""

from collections.abc import Mapping
from typing import TypeVar

K = TypeVar("K")


def admitted(
    backlog: Mapping[K, int],
    offset_bytes: Mapping[K, float],
    records_max: int | None,
    bytes_max: int | None,
    waited: Mapping[K, int],
) -> dict[K, int]:
    """How many offsets of each partition's `backlog` are read, within both limits.

    `offset_bytes` is about how many bytes of the log an offset of the partition takes, `waited`
    what `waits` returned of the last micro-batch. At least one offset is read where there is one:
    a limit below a record's size stops nothing.
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
    """For how many micro-batches each partition has waited, after one that reads `counts`."""
    return {key: waited.get(key, 0) + 1 for key in backlog if backlog[key] and not counts[key]}


def _shared(
    backlog: Mapping[K, int], costs: Mapping[K, float], limit: int, waited: Mapping[K, int]
) -> dict[K, int]:
    """As many offsets of each as `limit` allows, at its cost for each."""
    shares = dict.fromkeys(backlog, 0)
    # The smallest first, so that what it leaves goes to all others.
    waiting = sorted((key for key in backlog if backlog[key]), key=lambda k: backlog[k] * costs[k])
    room = float(limit)
    # One offset of each, and of the first whatever it takes: else it might wait forever.
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
    """Whether there is so much that a micro-batch need not wait for more. Either will do."""
    if records_min is None and bytes_min is None:
        return True
    records = sum(backlog.values())
    size = sum(count * offset_bytes[key] for key, count in backlog.items())
    return (records_min is not None and records >= records_min) or (
        bytes_min is not None and size >= bytes_min
    )
