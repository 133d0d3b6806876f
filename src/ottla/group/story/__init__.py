"""The memory of a group's rebalances, for `ottla why rebalance`.

Begin with `flights`.
"""
