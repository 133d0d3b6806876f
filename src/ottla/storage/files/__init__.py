"""The names of a log's files, and the small files beside its segments.

Begin with `names`.
"""
