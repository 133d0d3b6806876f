"""The shell of replication: carries out the decisions of the cores in `replica`.

`roles` makes partitions leaders or followers and carries out what leaders decide, `fetcher`
fetches from leaders, `replica_sessions` serves the followers' fetches, `isr_writer` writes changes
of the ISR to the store.
"""
