"""The transaction coordinator's core: decisions about transactional ids, and their records.

Semantics: KIP-98, KIP-360 (a producer continues after an error), KIP-890 (the epoch rises with each
transaction, so that no delayed request ends or joins a later one). Begin with `coordinator`.
It does no I/O, knows no clock, and never waits.
"""
