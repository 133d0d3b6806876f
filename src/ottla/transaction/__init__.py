"""The transaction coordinator's core: what may happen to a transactional id, and what is written.

Semantics: KIP-98, KIP-360 (a producer goes on after an error), KIP-890 (the epoch rises with each
transaction, so that what was delayed cannot end or join a later one). `coordinator` is the way in.
It does no I/O, knows no clock, and never waits.
"""
