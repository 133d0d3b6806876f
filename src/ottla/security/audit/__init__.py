"""The audit log as a core: lines chained by their hashes, repetitions counted, damage found.

Begin with `chain`, which says what a line is; `verification` checks files of them. The broker's
files are written by `ottla.broker.audit`.
"""
