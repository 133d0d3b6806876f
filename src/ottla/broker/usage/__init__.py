"""Which clients use which topics, and why requests of a client were slow or failed.

Begin with `table`, which counts; `part` keeps its counts in a file.
"""
