"""Loads that are killed with -9, and the check of what is left, which is not ottla's own."""
