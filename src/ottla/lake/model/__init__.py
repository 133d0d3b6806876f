"""Values of the lake: manifest, plan, ranges, schemas, hashes, and a table's log as a chain.

Begin with `manifest`. No module here does I/O, and none knows another package of the lake.
"""
