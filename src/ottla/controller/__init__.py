"""Decides for the whole cluster: leaders, in-sync replicas of the dead, reassignments, deletions.

Values in, values out: no store, no connections, no clock. The broker's shell writes what is
decided here and tells the brokers; simulation and random walk import the same functions.
"""
