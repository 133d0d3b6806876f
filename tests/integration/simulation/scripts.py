"""All stories of transactions, batches and groups, and the mutants that fail them."""

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

from . import (
    group_mutants,
    group_stories,
    idempotence_mutants,
    idempotence_stories,
    log_stories,
    marker_stories,
    name_mutants,
    name_stories,
    replica_mutants,
    replica_stories,
    transaction_mutants,
    transaction_stories,
)
from .mutants import Mutate
from .stories import play

AnyStory = Callable[..., Any]
SCRIPTS: dict[AnyStory, list[Mutate]] = {
    **transaction_stories.SCRIPTS,
    **marker_stories.SCRIPTS,
    **idempotence_stories.SCRIPTS,
    **log_stories.SCRIPTS,
    **group_stories.SCRIPTS,
    **replica_stories.SCRIPTS,
    **name_stories.SCRIPTS,
}


def tell(story: AnyStory) -> None:
    """Play a story, in a cluster where it needs one. Raises what it finds wrong."""
    if inspect.iscoroutinefunction(story):
        play(story)
    else:
        story()


def mutants_of(*modules: ModuleType) -> list[Mutate]:
    """All mutants of these modules."""
    return [
        found
        for module in modules
        for name, found in vars(module).items()
        if inspect.isfunction(found)
        and found.__module__ == module.__name__
        and not name.startswith("_")
    ]


MUTANTS = mutants_of(
    transaction_mutants, idempotence_mutants, group_mutants, replica_mutants, name_mutants
)
