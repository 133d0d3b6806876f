"""Groups of the consumer protocol (KIP-848): the coordinator assigns partitions.

Begin with `heartbeating`. `group` is the durable state, changed by `records` alone; `assignors`
make the target assignment, `reconciling` leads a member to it without two members ever having
the same partition, `subscriptions` resolves topics, `describing` answers ConsumerGroupDescribe.
"""
