"""The files under one base offset, and a log's segments in order.

Begin with `segment`, which has `indexes`; `segments` is their list.
"""
