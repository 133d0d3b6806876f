"""Invariants of a simulated world, liveness after healing, and the report of a run.

Begin with `invariants` and `liveness`.
"""
