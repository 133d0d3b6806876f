"""Quotas: how much an entity may use, how much it has used, and how long it has to wait.

A core: time is an argument, and what it decides is a number of milliseconds. The brokers' shells
(`broker.throttling`, `broker.replication.throttles`) do the waiting.
"""
