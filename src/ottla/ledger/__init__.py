"""Arithmetic of offsets: data, control, aborted, compacted, deleted, lost."""
