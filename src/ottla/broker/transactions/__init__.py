"""Transactions at work: `ottla.transaction` decides, this appends, waits, answers and marks.

`transactions` finds the shard of a transactional id, `shard` runs one partition of
`__transaction_state`, `marker_sender` has outcomes written by the leaders of partitions, which
`marker_writing` does, and `enlisting` asks coordinators on behalf of partitions.
"""

from ottla.broker.transactions.transactions import Transactions

__all__ = ["Transactions"]
