"""One partition's log: append, read, flush, truncate, retention, and opening it from its files.

Begin with `append_log` (the hot path), `flushed_log` above it, and `log` on top.
"""
