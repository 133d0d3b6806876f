"""Verifies a table: derives its proof again from its files and its topic."""
