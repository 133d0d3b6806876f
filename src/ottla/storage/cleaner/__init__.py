"""Compaction: of each key at least the latest record stays, at its offset.

The parts, from the inside out: `record.sifting` maps each key to its last offset and sifts records,
`keeping` decides about batches, `rewriting` makes the smaller batch, `cleaning` cleans files;
`dirt` finds the dirty part, `preparing` makes a job of it, `swap` puts the cleaned segments in
place, and `leftovers` completes that after a crash.
"""
