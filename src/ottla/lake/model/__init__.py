"""Values of the lake: manifests and their chain, plans, ranges, schemas and hashes.

Begin with `manifest`. No module here does I/O or imports another package of the lake.
"""
