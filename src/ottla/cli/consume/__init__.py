"""The command `ottla consume`: `reader` reads records, and `shape` formats them."""
