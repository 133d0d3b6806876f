"""The shell of replication: carries out the decisions of the cores in `replica`.

`roles` makes leaders and followers, `fetcher` pulls, `replica_sessions` serves the followers'
fetches, `isr_writer` writes changes of the ISR to the store.
"""
