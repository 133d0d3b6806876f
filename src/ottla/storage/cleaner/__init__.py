"""Compaction: of each key at least the latest record stays, at its offset.

The parts, from the inside out: `record.key_map` maps each key to its last offset and sifts records,
`survivors` decides about batches, `smaller_batch` makes the smaller batch, `compaction` cleans
files; `plan` finds the dirty part and makes a job of it, and `swap` puts the cleaned segments in
place. `recovery.leftovers` completes that after a crash.
"""
