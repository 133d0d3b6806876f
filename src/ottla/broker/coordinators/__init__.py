"""The runtime shared by the coordinators of groups, transactions and share states.

`shards` finds the shard of a key among the partitions that this broker leads. `shard` loads one
partition, writes its decisions, and closes it; `replay` reads its log; `replies` answers requests
when all appended records are committed.
"""

from ottla.broker.coordinators.replies import TOO_LARGE, Ticket, give
from ottla.broker.coordinators.shard import Shard
from ottla.broker.coordinators.shards import Coordinators, ShardsStatus

__all__ = ["TOO_LARGE", "Coordinators", "Shard", "ShardsStatus", "Ticket", "give"]
