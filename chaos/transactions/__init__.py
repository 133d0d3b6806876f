"""Records passed on exactly once while brokers and those who pass them on are killed."""
