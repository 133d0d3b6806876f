"""What share groups do with single records (KIP-932), decided without I/O.

`partition` is a partition as its leader hands it out to the members of one group: which member
has which record, how often it was given out, and until when. `coordinator` keeps what must survive
of that, for many partitions, as `records` in `__share_group_state`. `session` is what a member
fetched last time.
"""
