"""The parts of serving Fetch: sessions, reading, waiting, and the fast path of known consumers.

Begin with `read`, then `delayed`; `shortcut` is the fast path.
"""
