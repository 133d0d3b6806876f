"""Whole clusters in virtual time under faults, each drawn from a seed, and what judges them."""
