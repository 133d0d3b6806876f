"""Quotas of clients, users, addresses and connections: what is set, and what enforces it.

The arithmetic is in `ottla.quota`. Begin with `quotas`.
"""
