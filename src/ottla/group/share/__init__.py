"""Share groups (KIP-932): members that consume the same partitions together.

Begin with `groups`. `heartbeats` is ShareGroupHeartbeat, `state_topics` the partitions with
initialized state. The assignor is in `group.consumer.assignors`. The state of single records is in
`ottla.share`.
"""
