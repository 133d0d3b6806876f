"""The historical bugs, and some of our own, each put back by a subclass: none may survive.

A mutant is a `Build` of the world. Nothing of it stands in the code that ships.
"""

from verify.walk.mutants import (
    commitment,
    conditions,
    divergence,
    elections,
    fencing,
    idleness,
    membership,
)
from verify.walk.mutants.registry import MUTANTS

__all__ = [
    "MUTANTS",
    "commitment",
    "conditions",
    "divergence",
    "elections",
    "fencing",
    "idleness",
    "membership",
]
