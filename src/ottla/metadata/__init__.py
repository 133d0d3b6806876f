"""The cluster image: topics, partitions, brokers, configs. Immutable, derived from the store."""
