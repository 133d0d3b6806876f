"""Reading files after a stop: what is whole, what is truncated, what is refused or salvaged.

Begin with `recovery`; `scrub` looks for damage while the broker runs.
"""
