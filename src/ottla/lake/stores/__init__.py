"""Where the files of a table are: the seam *files*, and a module for each kind of storage."""
