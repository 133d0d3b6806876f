"""Worlds in which brokers authorize, and ACLs and users change while faults last.

The troubles of the store come more often: notices of changes are lost with them, or come late.
"""

from dataclasses import replace
from random import Random

from verify.simulation.worlds.profile import Profile, draw

SECURE_SEED_S = 30.0
_OFTEN = {"store_outage": 4, "store_cut": 10, "store_answer": 4, "pause": 4, "kill_controller": 4}
# They need more than one broker.
_FOR_MANY = frozenset({"kill_controller"})


def draw_secure(seed: int | str, brokers: int | None = None) -> Profile:
    """The profile of a seed."""
    profile = draw(seed, brokers)
    chance = Random(f"{seed}/profile/secure")
    often = {kind: weight for kind, weight in _OFTEN.items() if chance.random() < 0.5}
    if profile.brokers == 1:
        often = {kind: weight for kind, weight in often.items() if kind not in _FOR_MANY}
    return replace(profile, guarded=True, weights={**profile.weights, **often})
