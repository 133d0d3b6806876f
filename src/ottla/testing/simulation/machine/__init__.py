"""A simulated machine: clock, disk, process, and its way to the store.

Begin with `machine`.
"""
