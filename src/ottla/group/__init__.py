"""The core of the group coordinator: it decides, and does no I/O.

Begin with `coordinator`: a command returns a Decision, and `apply` applies the decision's records
to the state. Each package uses only the earlier ones in this list: `values` (members, assigned
partitions, timers), `records` (those of `__consumer_offsets`), `model` (the durable state, which
only records change), `classic` (JoinGroup, SyncGroup), `consumer` (KIP-848), `share` (KIP-932) and
`offsets`, `coordinator`.
"""
