"""Changes of a cluster that take several requests: planned as values, then carried out.

A plan is a frozen value that can be shown before anything changes. A function that takes the plan
and an `Admin` of `ottla.client` applies it, and reports progress to a callback. Changes that have
begun continue in the cluster when the caller stops waiting. No function here prints, asks the user,
or reads options. `lake`, `testing` and `cli` may import this package; it imports `diagnosis`,
`client` and the cores below.

Begin with `moves` (plans of moves, and their execution); `placement` makes plans.
"""
