"""A table that follows a topic: the commits of a load, in micro-batches."""
