"""A random walk through the replication protocol, on the cores that ship.

A small world of brokers, a network that loses, doubles and reorders, a store with
compare-and-set, crashes and power cuts; the cores of `ottla.replica` and `ottla.controller`
decide, and after each step the invariants are checked. `mutants` are the historical bugs: each
must be found, which is what proves that the checks see anything. `scenarios` are the known ways
to lose records, step by step.

    python -m verify.walk --steps 1000000 --seed 1 [--mutant NAME|all]
    python -m verify.walk --seed 9 --mutant no_elr --trace 60
"""
