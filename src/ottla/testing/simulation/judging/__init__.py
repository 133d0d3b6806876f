"""What must hold in a simulated world, always and after healing, and how a run is reported.

Begin with `invariants` and `liveness`.
"""
