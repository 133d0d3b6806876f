"""Groups of the consumer protocol (KIP-848): the coordinator assigns partitions.

Begin with `heartbeats`. `assignors` make the target assignment, `targets` resolves subscriptions
and leads members to their targets, without two members ever having the same partition.
"""
