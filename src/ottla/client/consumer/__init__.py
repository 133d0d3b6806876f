"""Records read from leaders: positions, fetching ahead, handing out; the member of a classic group.

Begin with `consumer`, then `fetcher` and `session`. Assignors are in `ottla.client.assignors`.
"""
