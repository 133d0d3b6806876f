"""This broker's part in share groups (KIP-932): partition leader and share coordinator.

Start reading with `share_partitions`, which has the sessions of members, and `served`, which has
one share partition led by this broker. `delayed_share_fetch` handles a ShareFetch. `states` is the
share coordinator on `__share_group_state`, `persister` sends operations to share coordinators on
any broker, and `group_state` initializes and deletes the state of a group's partitions.
`dead_letters` writes dead letters.
"""

from ottla.broker.share.share_partitions import SharePartitions

__all__ = ["SharePartitions"]
