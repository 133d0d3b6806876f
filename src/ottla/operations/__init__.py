"""Changes of a cluster that take several requests: planned as values, then carried out.

A plan is a frozen value that can be shown before anything changes; a function that takes it and an
`Admin` of `ottla.client` carries it out, and reports progress to a callback. Changes that have
begun continue in the cluster when the caller stops waiting. Nothing here prints, asks a person, or
reads options. `lake`, `testing` and `cli` may import it; it imports `diagnosis`, `client` and the
cores below.

Begin with `moves` (the contents of a plan of moves, and its execution); `placement` makes plans.
"""
