"""Share groups (KIP-932): members that consume the same partitions together.

Begin with `groups`. `heartbeats` is ShareGroupHeartbeat, `assignor` the assignment, `begun` the
partitions with initialized state, `description` the answer to ShareGroupDescribe. The state of
single records is in `ottla.share`.
"""
