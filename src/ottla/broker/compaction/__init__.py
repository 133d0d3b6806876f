"""Compaction of a broker's logs: scheduling and processes; `storage.cleaner` does the work."""
