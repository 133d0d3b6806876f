"""The parts that coordinators of all kinds share.

`shards` finds the shard of a key among the partitions that this broker leads; `shard` loads one,
writes its decisions, and closes it; `replies` answers requests once everything appended is
committed.

`shards` finds the shard of a key among the partitions that are led here; `shard` loads one, writes
its decisions, and closes it; `answering` answers requests once everything appended is committed.
"""

from ottla.broker.coordinating.replies import TOO_LARGE, Ticket, give
from ottla.broker.coordinating.shard import Shard
from ottla.broker.coordinating.shards import Shards, ShardsStatus

__all__ = ["TOO_LARGE", "Shard", "Shards", "ShardsStatus", "Ticket", "give"]
