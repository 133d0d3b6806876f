"""The store in a SQLite file, for the brokers of one machine. Begin in `sqlite`."""
