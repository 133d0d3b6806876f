"""The topic: its offsets, limits and losses, plans over it, and its records as raw rows.

Begin with `cluster` and `reader`; `planner` plans the micro-batches of a stream.
"""
