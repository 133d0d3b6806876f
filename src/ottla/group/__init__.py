"""Consumer groups as a replicated core: decides, does no I/O.

Begin with `coordinator`: a command gives a Decision, `apply` makes its records part of the
state. One file per role: `joining`, `static_member`, `syncing`, `leaving`, `liveness` and
`rebalance` are the group protocol; `committing`, `fetching`, `retention` and `deleting` the
offsets; `records` the records of `__consumer_offsets`.
"""
