"""Tables derived from a topic of changes: each key's latest value, or its history of values."""
