"""The classic protocol of groups: join, sync, heartbeat, leave, and what a rebalance decides.

Begin with `join_group`, then `rebalance`.
"""
