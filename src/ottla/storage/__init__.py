"""The log on disk, in Kafka's own file formats.

From the bottom up: `disk` (file systems; the one in memory is for tests) → `index`, `files` (names,
checkpoints, the ledger of a log) → `segment` → `producers` → `recovery` (reading a log again after
a stop) → `log` (one partition's log) → `cleaner` (compaction) → `directory` (all logs of a broker).
"""
