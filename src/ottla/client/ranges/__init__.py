"""Ranges of offsets as raw batches over a blocking socket, for loads.

Begin with `ranges`.
"""
