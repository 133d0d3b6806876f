"""Pipelines: what is loaded from where into which table, in a file, and how it stands."""
