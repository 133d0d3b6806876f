"""Replication's shell: carries out what the cores in `replica` decide.

`roles` makes leaders and followers, `fetcher` pulls, `replica_sessions` serves those who pull
here, `isr_writer` takes changes of the ISR to the store.
"""
