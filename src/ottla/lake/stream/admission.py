"""How much of what is there one micro-batch reads. Pure.

Each partition gets the same share of a limit, and what one does not need goes to the others: a
long backlog in one partition does not make the others wait.
"""

from collections.abc import Mapping
from typing import TypeVar

K = TypeVar("K")


def admitted(
    backlog: Mapping[K, int],
    offset_bytes: Mapping[K, float],
    records_max: int | None,
    bytes_max: int | None,
) -> dict[K, int]:
    """How many offsets of each partition's `backlog` are read, within both limits.

    `offset_bytes` is about how many bytes of the log an offset of the partition takes. At least
    one offset is read where there is one: a limit below a record's size stops nothing.
    """
    found = dict(backlog)
    if records_max is not None:
        found = _shared(found, dict.fromkeys(found, 1.0), records_max)
    if bytes_max is not None:
        found = _shared(found, offset_bytes, bytes_max)
    return found


def _shared(backlog: Mapping[K, int], costs: Mapping[K, float], limit: int) -> dict[K, int]:
    """As many offsets of each as `limit` allows, at its cost for each."""
    shares = dict.fromkeys(backlog, 0)
    # The smallest first, so that what it leaves goes to all others.
    waiting = sorted((key for key in backlog if backlog[key]), key=lambda k: backlog[k] * costs[k])
    room = float(limit)
    for place, key in enumerate(waiting):
        share = room / (len(waiting) - place)
        shares[key] = min(backlog[key], int(share / costs[key]))
        room -= shares[key] * costs[key]
    if waiting and not any(shares.values()):
        shares[waiting[0]] = 1
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
