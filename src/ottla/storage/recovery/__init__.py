"""Reads files after a stop, and decides what is kept, what is truncated and what is refused.

Begin with `recovery`.
"""
