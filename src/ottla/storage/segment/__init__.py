"""The files under one base offset, and a log's segments in order.

Begin with `segment`, which has `indexes`; `segments` is their list, `batch_walk` goes from batch to
batch in a file.
"""
