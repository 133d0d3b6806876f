"""The worlds that seeds draw: how large, how busy, and what may go wrong.

Begin with `profile`, then `world`.
"""
