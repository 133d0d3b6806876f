"""From the world that a script leaves, on by chance."""

from dataclasses import replace

from ottla.testing.walk.controller import Controller
from ottla.testing.walk.walk import Walk
from ottla.testing.walk.world import SHIPPED, World
from tests.scenarios.scripts import Script

STEPS = 300


def world_after(script: Script) -> World:
    """Play the script; the world it leaves."""
    worlds = []

    class Remembering(Controller):
        def __init__(self, world: World) -> None:
            worlds.append(world)
            super().__init__(world)

    script(replace(SHIPPED, controller=Remembering))
    # A script that needs two worlds ends in the last of them.
    return worlds[-1]


def walk_on(script: Script, seed: int, steps: int = STEPS) -> None:
    """Raises Violation where an invariant breaks, or the world cannot be healed."""
    run = Walk(seed, world=world_after(script))
    run.run(steps)
    run.heal()
