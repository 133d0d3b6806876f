"""Offsets of groups: committed, in transactions or not, fetched, expired, deleted.

Begin with `commit`.
"""
