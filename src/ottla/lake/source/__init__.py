"""Reads the topic: its offsets, lost ranges and ledgers, and its records as raw rows.

Begin with `cluster` and `reader`; `planner` plans the micro-batches of a stream.
"""
