"""What is particular to Fetch: sessions, reading, waiting, and the fast way of known consumers.

Begin with `read`, then `delayed`; `shortcut` is the fast way.
"""
