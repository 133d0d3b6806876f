"""The decisions for the whole cluster: leaders, ISRs after failures, reassignments, deletions.

Values in, values out: no store, no connections, no clock. The broker's shell writes the decisions
to the store and sends them to the brokers; simulation and random walk use the same functions.
"""
