"""Groups of the consumer protocol (KIP-848): the coordinator assigns partitions.

Begin with `heartbeats`. `assignors` make the target assignment, `reconciliation` leads a member to
it without two members ever having the same partition, `subscriptions` resolves topics,
`description` answers ConsumerGroupDescribe.
"""
