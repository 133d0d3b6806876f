"""Consumer groups as a replicated core: decides, does no I/O.

`coordinator` is the way in: a command gives a Decision, `apply` makes its records part of the
state. One file per role: `joining`, `static_member`, `syncing`, `leaving`, `liveness` and
`rebalance` are the group protocol; `committing`, `fetching`, `retention` and `deleting` the
offsets; `records` what is written into `__consumer_offsets`.
"""
