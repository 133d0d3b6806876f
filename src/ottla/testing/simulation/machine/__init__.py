"""A simulated machine: its clock, disk, process, and connection to the store.

Begin with `machine`.
"""
