"""What changes a table: load, follow, changelog, replace, compact, expire, publish.

Begin with `load` and `commit`.
"""
