"""A consumer as a member of a classic group, and its offsets.

Begin with `membership`; assignors are beside it in `ottla.client.assignors`.
"""
