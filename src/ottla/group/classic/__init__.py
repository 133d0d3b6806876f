"""The classic protocol of groups: join, sync, heartbeat, leave, and what a rebalance decides.

Begin with `joining`, then `rebalance`.
"""
