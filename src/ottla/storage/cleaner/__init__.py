"""Compaction: of each key at least the latest record stays, at its offset.

The parts, from the inside out: `record.sifting` knows where each key stood last and looks at the
records, `keeping` decides about batches, `rewriting` makes the smaller batch, `cleaning` does it to
files; `dirt` says what is to be cleaned, `preparing` makes a job of it, `swap` puts the outcome in
place, and `leftovers` completes that after a crash.
"""
