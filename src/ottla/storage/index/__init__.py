"""Indexes of a segment or a log: by offset, by time, by transaction, by leader epoch.

Begin with `offset_index`; the other indexes have the same shape.
"""
