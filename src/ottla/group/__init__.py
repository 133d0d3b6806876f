"""Groups as a replicated core: it decides, and does no I/O.

Begin with `coordinator`: a command gives a Decision, `apply` makes its records part of the state.
From the bottom up: `values` (members, shares of partitions, timers) → `records` (what
`__consumer_offsets` holds) → `model` (the durable state, changed by records alone) → `classic`
(joins and syncs) → `consumer` (KIP-848) → `share` (KIP-932), `offsets` → `coordinator`.
"""
