"""Which mutants there are."""

from ottla.replica.follower import Follower
from ottla.replica.leader import Leader
from ottla.replica.term import Term
from verify.walk.controller import WalkController
from verify.walk.node import WalkNode
from verify.walk.store import WalkStore
from verify.walk.world import Build

MUTANTS: dict[str, Build] = {}


def mutant(part: type) -> type:
    """Register a class as the mutant of its name: `TruncateToHw` is `truncate_to_hw`."""
    name = "".join(f"_{c.lower()}" if c.isupper() else c for c in part.__name__).lstrip("_")
    if issubclass(part, Term):
        MUTANTS[name] = Build(node=type("MutantNode", (WalkNode,), {"term_class": part}))
    elif issubclass(part, Leader):
        MUTANTS[name] = Build(node=type("MutantNode", (WalkNode,), {"leader_class": part}))
    elif issubclass(part, Follower):
        MUTANTS[name] = Build(node=type("MutantNode", (WalkNode,), {"follower_class": part}))
    elif issubclass(part, WalkNode):
        MUTANTS[name] = Build(node=part)
    elif issubclass(part, WalkStore):
        MUTANTS[name] = Build(store=part)
    else:
        assert issubclass(part, WalkController)
        MUTANTS[name] = Build(controller=part)
    return part
