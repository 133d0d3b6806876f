"""The storage of a table's files: the seam *files*, and a module for each kind of storage."""
