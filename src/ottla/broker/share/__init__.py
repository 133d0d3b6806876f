"""This broker's part in share groups (KIP-932): partition leader and share coordinator.

Begin with `share_partitions`, the sessions of members, and `served`, one share partition that this
broker leads. `delayed_share_fetch` is one ShareFetch. `states` is the share coordinator on
`__share_group_state`; `persister` sends operations to share coordinators, at this broker or
another; `group_state` initializes and deletes the state of a group's partitions. `dead_letters`
writes dead letters.
"""

from ottla.broker.share.share_partitions import SharePartitions

__all__ = ["SharePartitions"]
