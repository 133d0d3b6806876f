"""The state of single records in share groups (KIP-932), decided without I/O.

`partition` is a share partition at the leader of its partition: which member has acquired which
record, until when, and how often the record was delivered. `coordinator` keeps the durable part of
that state, for many share partitions, as `records` in `__share_group_state`. `session` is a
member's share session: the partitions that it fetches from this broker.
"""
