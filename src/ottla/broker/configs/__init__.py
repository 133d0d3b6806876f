"""Dynamic settings: stored, sent to all brokers, and described.

Begin with `configs`.
"""
