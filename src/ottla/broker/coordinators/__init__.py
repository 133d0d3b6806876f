"""The runtime of coordinators: groups, transactions and share states are three of them.

`shards` finds the shard of a key among the partitions that this broker leads; `shard` loads one,
writes its decisions, and closes it; `replay` reads its log; `replies` answers requests once
everything appended is committed.
"""

from ottla.broker.coordinators.replies import TOO_LARGE, Ticket, give
from ottla.broker.coordinators.shard import Shard
from ottla.broker.coordinators.shards import Coordinators, ShardsStatus

__all__ = ["TOO_LARGE", "Coordinators", "Shard", "ShardsStatus", "Ticket", "give"]
