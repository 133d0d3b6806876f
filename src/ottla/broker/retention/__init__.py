"""Retention: what goes when, and who is waited for."""
