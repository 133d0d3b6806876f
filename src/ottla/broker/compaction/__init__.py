"""Compaction of a broker's logs: the schedule and the processes. `storage.cleaner` compacts."""
