"""From the world that a script leaves, on by chance."""

from dataclasses import replace

from verify.walk.controller import WalkController
from verify.walk.walk import ReplicaWalk
from verify.walk.world import SHIPPED, WalkWorld

from tests.integration.scenarios.scripts import Script

STEPS = 300


def world_after(script: Script) -> WalkWorld:
    """Play the script; the world it leaves."""
    worlds = []

    class Remembering(WalkController):
        def __init__(self, world: WalkWorld) -> None:
            worlds.append(world)
            super().__init__(world)

    script(replace(SHIPPED, controller=Remembering))
    # A script that needs two worlds ends in the last of them.
    return worlds[-1]


def walk_on(script: Script, seed: int, steps: int = STEPS) -> None:
    """Raises Violation where an invariant breaks, or the world cannot be healed."""
    run = ReplicaWalk(seed, world=world_after(script))
    run.run(steps)
    run.heal()
