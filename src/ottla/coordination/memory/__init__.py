"""The store in memory, with faults, for tests and simulations. Begin in `memory`."""
