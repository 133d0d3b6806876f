"""The store in which brokers agree: sessions, versions, sequences, watches."""
