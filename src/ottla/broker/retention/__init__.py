"""Retention: which segments are deleted when, and which readers are waited for."""
