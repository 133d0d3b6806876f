"""Worlds as they mostly are: hours of little to do, and trouble now and then.

The soak runs these. They draw from a stream of their own after all that a seed draws elsewhere,
so the worlds of `profile.draw` stay what they are. A simulated hour costs a tenth of theirs.
"""

from dataclasses import replace
from random import Random

from verify.simulation.worlds.profile import Profile, draw

# So long is the trouble of one seed.
CALM_SEED_S = 300.0
# What most worlds must have, that an hour brings enough of them.
_DEATHS = ("kill", "kill_leader", "kill_controller", "power")
_DEATHS_FACTOR = 3


def draw_calm(seed: int | str, brokers: int | None = None) -> Profile:
    """The profile of a seed, with rates between busy and nearly idle, and rarer trouble."""
    profile = draw(seed, brokers)
    chance = Random(f"{seed}/profile/calm")
    weights = dict(profile.weights)
    for kind in _DEATHS:
        if chance.random() < 0.75:
            weights[kind] *= _DEATHS_FACTOR
    return replace(
        profile,
        producers=chance.choice([1, 1, 2]),
        readers=chance.choice([0, 1]),
        members=chance.choice([0, 0, 1, 2]),
        send_every_ms=chance.choice([500, 3_000, 10_000, 30_000]),
        fault_every_ms=chance.choice([1_500, 4_000, 8_000, 16_000, 40_000]),
        fetch_wait_ms=chance.choice([200, 1_000, 3_000, 3_000]),
        poll_ms=chance.choice([500, 2_000, 5_000]),
        idle_ms=chance.choice([100, 500, 2_000]),
        ends_every_ms=chance.choice([500, 2_000, 10_000]),
        weights=weights,
    )
