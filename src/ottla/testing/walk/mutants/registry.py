"""Which mutants there are."""

from ottla.replica.follower import Follower
from ottla.replica.leader import Leader
from ottla.testing.walk.controller import Controller
from ottla.testing.walk.node import Node
from ottla.testing.walk.store import Store
from ottla.testing.walk.world import Build

MUTANTS: dict[str, Build] = {}


def mutant(part: type) -> type:
    """Register a class as the mutant of its name: `TruncateToHw` is `truncate_to_hw`."""
    name = "".join(f"_{c.lower()}" if c.isupper() else c for c in part.__name__).lstrip("_")
    if issubclass(part, Leader):
        MUTANTS[name] = Build(node=type("MutantNode", (Node,), {"leader_class": part}))
    elif issubclass(part, Follower):
        MUTANTS[name] = Build(node=type("MutantNode", (Node,), {"follower_class": part}))
    elif issubclass(part, Node):
        MUTANTS[name] = Build(node=part)
    elif issubclass(part, Store):
        MUTANTS[name] = Build(store=part)
    else:
        assert issubclass(part, Controller)
        MUTANTS[name] = Build(controller=part)
    return part
