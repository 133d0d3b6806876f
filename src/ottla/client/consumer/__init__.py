"""The consumer: positions, prefetching, delivering records, and membership in a classic group.

Begin with `consumer`, then `fetcher` and `subscription`. Assignors are in
`ottla.client.assignors`.
"""
