"""Diagnoses of a cluster: its state, its faults with causes, and remedies.

A diagnosis asks the brokers through an `Admin` of `ottla.client`, or gets their answers, and
returns frozen values; some fields are sentences for people. It prints nothing, changes nothing in
the cluster, and knows no command-line options. So the command line, a console, metrics and other
programs come to the same results.

`operations`, `lake`, `testing` and `cli` may import it; it imports `client`, `storage` and the
cores below. Begin with `cluster.health`, which combines all findings; those about partitions and
disks are in `health`.
"""
