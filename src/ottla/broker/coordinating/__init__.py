"""What coordinators of all kinds share.

`shards` finds the shard of a key among the partitions that are led here, `shard` loads one and
gives it up, `answering` tells whoever waits once everything appended is committed.
"""

from ottla.broker.coordinating.answering import (
    APPEND_FAILURES,
    TOO_LARGE,
    Ticket,
    fail,
    give,
    give_when_committed,
    split,
)
from ottla.broker.coordinating.shard import Shard
from ottla.broker.coordinating.shards import Shards

__all__ = [
    "APPEND_FAILURES",
    "TOO_LARGE",
    "Shard",
    "Shards",
    "Ticket",
    "fail",
    "give",
    "give_when_committed",
    "split",
]
