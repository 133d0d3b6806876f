"""Compaction: of each key at least the latest record stays, at its offset.

The parts, from the inside out: `offset_map` remembers where each key stood last, `keeping` decides
which batches and records stay, `rewriting` makes the smaller batch, `cleaning` does it to files, in
a child process (`__main__`); `choice` says what is to be cleaned, `swap` puts the outcome in place.
"""
