"""Replication's shell: carries out what the cores in `replica` decide.

`roles` makes leaders and followers, `fetcher` pulls, `replica_sessions` serves the followers'
fetches, `isr_writer` writes changes of the ISR to the store.
"""
