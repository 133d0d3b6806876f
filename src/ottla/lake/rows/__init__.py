"""From raw records to columns: typed values, event times, and what a changelog keeps.

`decoder` is the core: a batch of raw rows in, typed columns and refused rows out. Each format has
a module of its own. A bad value only affects its own row.
"""
