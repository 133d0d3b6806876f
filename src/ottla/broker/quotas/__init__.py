"""Quotas of users, client ids, addresses and connections: how they are set and enforced.

The arithmetic is in `ottla.quota`. Begin with `quotas`.
"""
