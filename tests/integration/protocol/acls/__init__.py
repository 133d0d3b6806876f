"""What each API needs, cell by cell: against Ottla, and against Apache Kafka."""
