"""Upkeep of a table: compaction of small files, expiry of old ones, replacement of ranges."""
