"""A cluster in one process, in virtual time, from one seed: brokers, store, network, disks."""
