"""Quotas: who may use how much, how much was used, and how long to wait.

A core: time is an argument, and what it decides is a number of milliseconds. The brokers' shells
(`broker.throttling`, `broker.replication.throttles`) do the waiting.
"""
