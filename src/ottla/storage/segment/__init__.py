"""The files under one base offset, and a log's segments in order.

Begin with `state`, then `segment`.
"""
