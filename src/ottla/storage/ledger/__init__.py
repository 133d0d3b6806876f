"""The account of offsets that are gone from a log, on the disk.

Begin with `offset_ledger`; the arithmetic is in `ottla.ledger`.
"""
