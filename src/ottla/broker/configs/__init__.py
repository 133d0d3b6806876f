"""Dynamic settings: stored, sent to all brokers, and described.

Start reading with `configs`.
"""
