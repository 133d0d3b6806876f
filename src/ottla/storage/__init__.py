"""The log on disk, in Kafka's own file formats.

From the bottom up: `filesystem` (the seam; `memory_filesystem` for tests) → the indexes and small
files (`offset_index`, `time_index`, `transaction_index`, `producer_snapshot`, `leader_epochs`,
`checkpoint`, `partition_metadata`, `meta_properties`) → `segment_state`, `segment`, `segments` →
opening (`loading`, `recovery`, `damage`, `replay`) → `append_log` (append, read), `flushed_log`
(what is durable), `log` (retention, truncation, questions) → `log_directory`, `log_directories`.
"""
