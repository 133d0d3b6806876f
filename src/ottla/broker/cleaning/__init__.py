"""Compaction of a broker's logs: when, which, in which process; `storage.cleaner` does the work."""
