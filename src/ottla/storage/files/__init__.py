"""The names of a log's files, and the small files in addition to its segments.

Begin with `names`.
"""
