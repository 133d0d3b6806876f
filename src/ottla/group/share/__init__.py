"""Share groups (KIP-932): members that consume the same partitions together.

Begin with `groups`. `group` is the durable state, changed by `records` alone; `heartbeating` is
ShareGroupHeartbeat, `assignor` the assignment, `begun` the partitions with initialized state,
`describing` the answer to ShareGroupDescribe. The state of single records is in
`ottla.share`.
"""
