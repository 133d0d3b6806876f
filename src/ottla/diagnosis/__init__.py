"""Diagnoses of a cluster: its state, its faults with causes, and remedies.

A diagnosis asks the brokers through an `Admin` of `ottla.client`, or takes what they answered, and
returns frozen values; some of their fields are sentences for people. It prints nothing, changes
nothing in the cluster, and knows neither options nor tables. So the command line, a console,
metrics and other programs find out the same in the same way.

`operations`, `lake`, `testing` and `cli` may import it; it imports `client`, and the cores and
`storage` below that. Begin with `cluster.health`, which puts together the findings of `health`
(partitions), `disks`, `cleaners` and `internal_topics`.
"""
