"""Compaction of a broker's logs: when, which, in which process; the work is `storage.cleaner`'s."""
