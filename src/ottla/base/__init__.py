"""The parts that every layer may use: ids, errors, clock, varints, checksums, settings."""
