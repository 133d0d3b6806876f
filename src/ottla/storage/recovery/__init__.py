"""Reading files after a stop: what is whole, what is truncated, what is refused.

Begin with `recovery`.
"""
