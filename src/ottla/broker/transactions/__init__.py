"""The shell of the transaction coordinator: appends, answers and sends markers.

Start reading with `transactions`, which finds the shard of a transactional id; `shard` runs one
partition of `__transaction_state`. `marker_sender` sends markers to the leaders of partitions,
which append them. `verification` checks that a transaction is open before its first batch in a
partition is appended.
"""

from ottla.broker.transactions.transactions import Transactions

__all__ = ["Transactions"]
