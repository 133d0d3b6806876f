"""Pipelines: a file declares a source and a table; here are its plan, run, status and report."""
