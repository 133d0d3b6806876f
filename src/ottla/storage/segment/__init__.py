"""The files under one base offset, and a log's segments in order.

Begin with `segment`, which has `indexes`. `segments` is the list of segments, and `batch_walk`
walks from batch to batch in a file.
"""
