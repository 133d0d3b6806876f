"""Where a table's files are: local folders, S3 and other object stores, Hadoop.

Begin with `store`; `targets` finds the store of a path or URL, `retries` has the one policy.
"""
