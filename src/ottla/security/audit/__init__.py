"""The audit log as a core: lines chained by their hashes, repetitions counted, damage found.

Begin with `chain`, which defines the lines; `verification` checks their files, which
`ottla.broker.audit` writes.
"""
