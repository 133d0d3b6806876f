"""Retention: which segments are deleted, when, and which readers delay it."""
