"""Retention: deletes old segments, and waits for consumer groups that still need them."""
