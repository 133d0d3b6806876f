"""Quotas: how much an entity may use, how much it has used, and its throttle time.

A core without I/O: time is an argument, and the results are throttle times in milliseconds.
`broker.requests.throttling` and `broker.replication.throttles` delay the requests.
"""
