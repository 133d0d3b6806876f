"""Stores of a table's files: local folders, S3 and other object stores.

Begin with `store`. `targets` finds the store for a path or URL, `retries` has the retry policy.
"""
