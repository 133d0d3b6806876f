"""Tables derived from a topic of changes: the latest value of each key, and each value's time."""
