"""The state of single records in share groups (KIP-932), decided without I/O.

`partition` is a partition as its leader hands it out to the members of one group: which member
has which record, how often it was delivered, and until when. `coordinator` keeps the durable part,
for many partitions, as `records` in `__share_group_state`. `session` is a member's share session,
its last fetch.
"""
